/* polyccl compare, in parts: compare.c reads the arguments, compiles and simulates, compare_chart.c draws. */
#ifndef PCCL_TOOLS_COMPARE_H
#define PCCL_TOOLS_COMPARE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <polyccl/types.h>

typedef struct pccl_curve {
  const char *label;
  const double *time; /* us */
  const double *bus;  /* GB/s, by size */
} pccl_curve;

typedef struct pccl_chart {
  const char *title;
  const pccl_curve *curve;
  size_t curves;
  const uint64_t *size; /* ascending */
  size_t sizes;
} pccl_chart;

/* Bus bandwidth over size, logarithmic in size, as SVG. */
polyccl_result pccl_chart_write(const pccl_chart *chart, FILE *to);

#endif
