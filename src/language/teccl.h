/* TE-CCL's schedules. teccl.c reads the files, teccl_paths.c the paths of an AllToAll, teccl_text.c the sentences. */
#ifndef PCCL_LANGUAGE_TECCL_H
#define PCCL_LANGUAGE_TECCL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "language/synth.h"
#include "language/synth_json.h"

typedef struct pccl_flow {
  int32_t chunk, source; /* -1 in a path, where the demand says */
  int32_t from, to, epoch;
  double volume; /* the share of the chunk; 1: all of it */
  bool has_volume;
  int32_t line, serial;
} pccl_flow;

typedef struct pccl_demand {
  int32_t at, chunk, source;
} pccl_demand;

/* "I->J[ with volume V] in epoch K[ via switches ...]". False: the text has another form. */
bool pccl_teccl_hop(const char *text, pccl_flow *flow);

/* "Chunk C from S traveled over " and a hop. */
bool pccl_teccl_flow(const char *text, pccl_flow *flow);

/* "Demand at D for chunk C from S ..." */
bool pccl_teccl_demand(const char *text, pccl_demand *demand);

typedef struct pccl_teccl_reader {
  pccl_loader *loader;
  pccl_synth *schedule;
  pccl_line_cursor cursor;
  pccl_map ranks; /* node -> rank; the other nodes are switches */
  PCCL_VEC(pccl_flow) flows;
  PCCL_VEC(int32_t) nodes;
  pccl_map held; /* (node, source, chunk) of a switch -> the rank from which it came */
  int32_t pieces;
} pccl_teccl_reader;

polyccl_location pccl_teccl_place(const pccl_teccl_reader *r, int32_t line);
/* The rank of a node; -1: the node is a switch. */
int32_t pccl_teccl_rank(const pccl_teccl_reader *r, int32_t node);
/* Fails because `text` has not the form of `form`. `text` NULL: what stands there is no string. */
polyccl_result pccl_teccl_wrong_sentence(pccl_teccl_reader *r, const char *text, const char *form);
polyccl_result pccl_teccl_add_hop(pccl_teccl_reader *r, pccl_hop hop);
/* Adds the hops of all demands of "Chunk paths". */
polyccl_result pccl_teccl_add_demands(pccl_teccl_reader *r, json_t *object);

#endif
