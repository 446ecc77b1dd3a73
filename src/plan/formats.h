/* The plan's formats, one reader and one writer each; format.c chooses among them. */
#ifndef PCCL_PLAN_FORMATS_H
#define PCCL_PLAN_FORMATS_H

#include <polyccl/plan.h>

/* The largest text a reader takes: line numbers and indices of what stands in it then fit an int32_t. */
#define PCCL_PLAN_MAX_BYTES ((size_t)INT32_MAX)

/* Channels that readers take; the executors' and formats' own limits are lower. */
#define PCCL_PLAN_MAX_CHANNEL ((1 << 20) - 1)

polyccl_result pccl_text_plan_read(const char *name, const char *text, size_t length, polyccl_plan **plan);
polyccl_result pccl_text_plan_write(const polyccl_plan *plan, FILE *to);
polyccl_result pccl_xml_plan_read(const char *name, const char *text, size_t length, polyccl_plan **plan);
/* `format`: one of the XML formats. */
polyccl_result pccl_xml_plan_write(const polyccl_plan *plan, polyccl_format format, FILE *to);

#endif
