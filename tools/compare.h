/* polyccl compare, in parts: compare.c reads the arguments and prints the results, compare_series.c compiles and
 * simulates, compare_chart.c draws. */
#ifndef PCCL_TOOLS_COMPARE_H
#define PCCL_TOOLS_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <polyccl/compile.h>
#include <polyccl/topology.h>

#include "base/vec.h"
#include "program_args.h"
#include "sizes.h"

enum { PCCL_COMPARE_MAX_CHOICES = 16, PCCL_COMPARE_MAX_SERIES = 64 };

/* The words of a list option. An empty list stands for one choice, NULL, which leaves the program as it is. */
typedef struct pccl_choices {
  char *text;
  const char *word[PCCL_COMPARE_MAX_CHOICES];
  int count;
} pccl_choices;

typedef struct pccl_series {
  pccl_program_args *program;
  const char *policy, *protocol, *order, *instances;
  char label[160];
  polyccl_plan *plan;
  double *time, *bus; /* by size */
} pccl_series;

typedef struct pccl_compare_args {
  PCCL_VEC(pccl_program_args) program;
  pccl_program_args common;
  pccl_choices policy, protocol, order, instances;
  const char *topology_name, *svg, *title;
  polyccl_schedule schedule;
  pccl_sizes sizes;
  bool has_sizes, times;

  polyccl_topology *topology;
  pccl_series series[PCCL_COMPARE_MAX_SERIES];
  size_t count;
  uint64_t *size;
  size_t size_count;
} pccl_compare_args;

/* Makes a series of each program and combination of choices, compiles and simulates all. The exit status; the error was
 * printed. pccl_compare_free() frees what was made either way. */
int pccl_compare_run(pccl_compare_args *args);
void pccl_compare_free(pccl_compare_args *args);

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
