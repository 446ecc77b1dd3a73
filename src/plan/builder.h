/* Builds a plan piece by piece: its arrays grow, and each connection and location is kept once. The readers of plans
 * and the passes that rewrite a plan use it. Start from {0}; pccl_plan_builder_finish() hands the arrays to a plan;
 * call pccl_plan_builder_free() in every case, after finish() too. */
#ifndef PCCL_PLAN_BUILDER_H
#define PCCL_PLAN_BUILDER_H

#include <polyccl/plan.h>

#include "base/map.h"
#include "base/vec.h"

typedef struct polyccl_plan_location pccl_plan_location;

typedef struct pccl_plan_builder {
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
} pccl_plan_builder;

/* Appends a thread block of `rank`, a step to the last thread block, a wait to the last step. The caller fills in the
 * step; the pointer holds until the next step is added. The only error is MEMORY. */
polyccl_result pccl_plan_builder_add_tb(pccl_plan_builder *builder, int32_t rank);
polyccl_result pccl_plan_builder_add_step(pccl_plan_builder *builder, polyccl_step **step);
polyccl_result pccl_plan_builder_add_wait(pccl_plan_builder *builder, int32_t tb, int32_t step);

/* Sets *index to that of the connection or location, which is added if it is new. Ranks are below 2^17, channels below
 * 2^20. The only error is MEMORY. */
polyccl_result pccl_plan_builder_connection(pccl_plan_builder *builder, int32_t src, int32_t dst, int32_t channel,
                                            int32_t *index);
polyccl_result pccl_plan_builder_location(pccl_plan_builder *builder, int32_t file, int32_t line, int32_t *index);

/* Moves the arrays into `plan` and sets the thread blocks of each rank. Of the plan's own arrays those that it had when
 * it was created are freed. */
void pccl_plan_builder_finish(pccl_plan_builder *builder, polyccl_plan *plan);
void pccl_plan_builder_free(pccl_plan_builder *builder);

#endif
