/* The sentences of TE-CCL's schedules. teccl.c reads the files. */
#ifndef PCCL_LANGUAGE_TECCL_H
#define PCCL_LANGUAGE_TECCL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pccl_flow {
  int32_t chunk, source; /* -1 in a path, where the demand says */
  int32_t from, to, epoch;
  double volume; /* 1: all of it */
  bool has_volume;
  int32_t line, serial;
} pccl_flow;

typedef struct pccl_demand {
  int32_t at, chunk, source;
} pccl_demand;

/* "I->J[ with volume V] in epoch K[ via switches ...]"; false: it is none. */
bool pccl_teccl_hop(const char *text, pccl_flow *flow);

/* "Chunk C from S traveled over " and a hop. */
bool pccl_teccl_flow(const char *text, pccl_flow *flow);

/* "Demand at D for chunk C from S ..." */
bool pccl_teccl_demand(const char *text, pccl_demand *demand);

#endif
