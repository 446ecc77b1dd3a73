/* A plan while a reader puts it together: arrays that grow, connections and locations kept once each.
 * Start from {0}; pccl_parts_finish() hands the arrays to a plan; pccl_parts_free() after it, too. */
#ifndef PCCL_PLAN_PARTS_H
#define PCCL_PLAN_PARTS_H

#include <polyccl/plan.h>

#include "base/map.h"
#include "base/vec.h"

typedef struct polyccl_plan_location pccl_plan_location;

typedef struct pccl_parts {
  PCCL_VEC(polyccl_plan_rank) rank;
  PCCL_VEC(polyccl_thread_block) tb;
  PCCL_VEC(polyccl_step) step;
  PCCL_VEC(polyccl_wait) wait;
  PCCL_VEC(polyccl_connection) connection;
  PCCL_VEC(polyccl_post) post;
  PCCL_VEC(polyccl_leaf) leaf;
  PCCL_VEC(polyccl_leaf) absent;
  PCCL_VEC(char *) file;
  PCCL_VEC(pccl_plan_location) location;
  pccl_map connections, locations;
} pccl_parts;

/* Begins the next thread block of `rank`, the next step of the last thread block, the next wait of the last step; the
 * caller fills the step in. MEMORY is the only error. */
polyccl_result pccl_parts_tb(pccl_parts *parts, int32_t rank);
polyccl_result pccl_parts_step(pccl_parts *parts, polyccl_step **step);
polyccl_result pccl_parts_wait(pccl_parts *parts, int32_t tb, int32_t step);

/* The index of the connection or location, added where it is new. Ranks below 2^17, channels below 2^20. */
polyccl_result pccl_parts_connection(pccl_parts *parts, int32_t src, int32_t dst, int32_t channel, int32_t *index);
polyccl_result pccl_parts_location(pccl_parts *parts, int32_t file, int32_t line, int32_t *index);

/* Moves the arrays into `plan`, whose own (but for its name) are freed; sets each rank's tbs. */
void pccl_parts_finish(pccl_parts *parts, polyccl_plan *plan);
void pccl_parts_free(pccl_parts *parts);

#endif
