/* The page of `polyccl view`: one HTML file that needs no other file. Its sources are in page/; its data are the arrays
 * of the traces in base64. */
#ifndef PCCL_VIEW_PAGE_H
#define PCCL_VIEW_PAGE_H

#include <polyccl/trace.h>

typedef struct pccl_fact {
  char term[32], text[224];
} pccl_fact;

/* Writes the page. `facts` stand under the title. The traces must be finished; at most two make sense, a simulation and
 * a measurement. The stream stays open. Errors: LIMIT for more boxes than a browser can open, MEMORY, SYSTEM. */
polyccl_result pccl_page_write(const char *title, const pccl_fact *facts, size_t fact_count,
                               const polyccl_trace *const *traces, size_t trace_count, FILE *to);

#endif
