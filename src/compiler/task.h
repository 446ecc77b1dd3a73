/* Tasks: the unit of ResCCL's scheduling. A task is a message (its send and its receive) or a local node, with the
 * links that it occupies. Tasks are built once from the lowered IR and may be scheduled many times.
 *
 * Source: ResCCL (SIGCOMM'25), sections on the dependency DAG and on HPDS. Where the published text is silent, a
 * comment beside the code says that the choice is ours. */
#ifndef PCCL_COMPILER_TASK_H
#define PCCL_COMPILER_TASK_H

#include "compiler/ir.h"
#include "compiler/routes.h"

typedef struct pccl_task {
  int32_t node;         /* the send, or the local node */
  int32_t chunk;        /* whose priority it has */
  int32_t route, links; /* first index and number in tasks->route.link */
  int32_t succ;         /* first index in tasks->succ; ends where the next task's begin */
  int32_t preds;
  int32_t path; /* tasks on the longest path to an end, this one included */
} pccl_task;

typedef struct pccl_tasks {
  pccl_ir *ir;
  const polyccl_topology *topology;
  pccl_task *task; /* [count + 1], the last one marks the end of succ */
  size_t count;
  int32_t *succ;
  pccl_link_lists route;
  int32_t *capacity; /* [links] tasks at once */
  int32_t chunks;
  int32_t *task_of_node; /* [nodes] */
} pccl_tasks;

/* What a scheduler decides. */
typedef struct pccl_pipeline {
  int32_t *of_task;  /* [tasks] sub-pipeline */
  int32_t *sequence; /* [tasks] tasks in the global order */
  int32_t pipelines;
} pccl_pipeline;

polyccl_result pccl_tasks_build(pccl_ir *ir, const polyccl_topology *topology, pccl_tasks *tasks);
void pccl_tasks_free(pccl_tasks *tasks);

/* max_tbs: endpoints of a rank in a sub-pipeline, 0: no bound. The baseline does not look at it. */
polyccl_result pccl_schedule_hpds(const pccl_tasks *tasks, int32_t max_tbs, pccl_pipeline *pipeline);
polyccl_result pccl_schedule_round_robin(const pccl_tasks *tasks, int32_t max_tbs, pccl_pipeline *pipeline);
void pccl_pipeline_free(pccl_pipeline *pipeline);

#endif
