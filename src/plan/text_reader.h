/* The state of the reader of plan text, which text_read.c (ranks, thread blocks, steps) and text_head.c (the header)
 * share. */
#ifndef PCCL_PLAN_TEXT_READER_H
#define PCCL_PLAN_TEXT_READER_H

#include "plan/builder.h"
#include "plan/plan.h"
#include "plan/scan.h"

typedef struct pccl_text_reader {
  pccl_scan scan;
  pccl_plan_builder builder;
  polyccl_plan head; /* the header's fields */
  unsigned seen;     /* bit set of the header lines that were read */
  PCCL_VEC(int32_t) post_line;
  PCCL_VEC(int32_t) absent_line;
  int32_t last_recv, last_send; /* most steps use the connection of the step before */
} pccl_text_reader;

/* Reads a number in [min, max]; `what` names it in the error. */
polyccl_result pccl_text_read_int(pccl_text_reader *reader, const char *what, int32_t min, int32_t max, int32_t *value);

/* Reads one line of the header, which begins at `start`. */
polyccl_result pccl_text_read_head_line(pccl_text_reader *reader, pccl_scan *start);

/* Checks at the header's end what its lines say together, and sets defaults. */
polyccl_result pccl_text_check_head(pccl_text_reader *reader);

#endif
