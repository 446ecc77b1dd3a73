/* The page of `polyccl view`: one HTML file that needs nothing else. Its sources are page/; its data are the traces'
 * arrays in base64. */
#ifndef PCCL_VIEW_PAGE_H
#define PCCL_VIEW_PAGE_H

#include <polyccl/trace.h>

typedef struct pccl_fact {
  char term[32], text[224];
} pccl_fact;

/* `facts` stand under the title; the traces are finished, the first is shown by itself where there is no room. */
polyccl_result pccl_page_write(const char *title, const pccl_fact *facts, size_t fact_count,
                               const polyccl_trace *const *traces, size_t trace_count, FILE *to);

#endif
