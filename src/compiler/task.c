#include "compiler/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

void pccl_tasks_free(pccl_tasks *tasks) {
  free(tasks->task);
  free(tasks->succ);
  free(tasks->capacity);
  free(tasks->task_of_node);
  pccl_link_lists_free(&tasks->route);
}

void pccl_pipeline_free(pccl_pipeline *pipeline) {
  free(pipeline->of_task);
  free(pipeline->sequence);
  *pipeline = (pccl_pipeline){0};
}

/* ---- links ---- */

static polyccl_result find_capacities(pccl_tasks *tasks) {
  const polyccl_topology *t = tasks->topology;
  tasks->capacity = pccl_array(t->links, sizeof *tasks->capacity);
  if (tasks->capacity == NULL) {
    return pccl_no_memory("the schedule");
  }
  for (size_t i = 0; i < t->links; i++) {
    tasks->capacity[i] = pccl_link_capacity(t, (int32_t)i, tasks->ir->program->config.protocol);
  }
  return POLYCCL_SUCCESS;
}

/* ---- chunks ---- */

/* Follows the data: what a task moves belongs to the chunk that its source held. Where the collective reduces, chunks
 * with the same index on all ranks are one; otherwise each rank's input is its own. */
static polyccl_result find_chunks(pccl_tasks *tasks) {
  pccl_ir *ir = tasks->ir;
  int input, output;
  pccl_collective_shape(&ir->spec, &input, &output);
  bool shared = pccl_collective_reduces(ir->spec.kind);
  size_t slots = ir->first_slot[ir->spec.ranks];
  int32_t *chunk = pccl_zeroed(slots, sizeof *chunk);
  if (chunk == NULL) {
    return pccl_no_memory("the schedule");
  }
  for (int rank = 0; rank < ir->spec.ranks; rank++) {
    for (int32_t i = 0; i < input; i++) {
      chunk[pccl_ir_slot(ir, rank, POLYCCL_BUF_INPUT, i)] = shared ? i : rank * input + i;
    }
  }
  tasks->chunks = shared ? input : input * ir->spec.ranks;
  for (size_t i = 0; i < tasks->count; i++) {
    const pccl_node *node = &ir->nodes.data[tasks->task[i].node];
    const pccl_node *end = node->to >= 0 ? &ir->nodes.data[node->to] : node;
    size_t from = pccl_ir_slot(ir, node->rank, node->src_buf, node->src);
    size_t to = pccl_ir_slot(ir, end->rank, end->dst_buf, end->dst);
    tasks->task[i].chunk = chunk[from];
    for (int32_t k = 0; k < node->count && !pccl_ops[end->op].reduces; k++) {
      chunk[to + (size_t)k] = chunk[from + (size_t)k];
    }
  }
  free(chunk);
  return POLYCCL_SUCCESS;
}

/* ---- dependencies ---- */

/* Counts the successors of every predecessor of task i, once for each node of the task that has it. */
static void count_edges(pccl_tasks *tasks, size_t i, int32_t *degree) {
  const pccl_ir *ir = tasks->ir;
  int32_t nodes[2] = {tasks->task[i].node, ir->nodes.data[tasks->task[i].node].to};
  for (int k = 0; k < 2 && nodes[k] >= 0; k++) {
    const pccl_node *node = &ir->nodes.data[nodes[k]];
    for (int32_t p = 0; p < node->preds; p++) {
      int32_t pred = tasks->task_of_node[ir->preds.data[node->pred + p]];
      degree[pred]++;
      tasks->task[i].preds++;
    }
  }
}

static void fill_edges(pccl_tasks *tasks, size_t i, int32_t *next) {
  const pccl_ir *ir = tasks->ir;
  int32_t nodes[2] = {tasks->task[i].node, ir->nodes.data[tasks->task[i].node].to};
  for (int k = 0; k < 2 && nodes[k] >= 0; k++) {
    const pccl_node *node = &ir->nodes.data[nodes[k]];
    for (int32_t p = 0; p < node->preds; p++) {
      int32_t pred = tasks->task_of_node[ir->preds.data[node->pred + p]];
      tasks->succ[next[pred]++] = (int32_t)i;
    }
  }
}

static polyccl_result find_edges(pccl_tasks *tasks) {
  int32_t *degree = pccl_zeroed(tasks->count, sizeof *degree);
  if (degree == NULL) {
    return pccl_no_memory("the schedule");
  }
  for (size_t i = 0; i < tasks->count; i++) {
    count_edges(tasks, i, degree);
  }
  int64_t total = 0;
  for (size_t i = 0; i < tasks->count; i++) {
    tasks->task[i].succ = (int32_t)total;
    total += degree[i];
    degree[i] = tasks->task[i].succ;
  }
  tasks->task[tasks->count].succ = (int32_t)total;
  tasks->succ = total < INT32_MAX ? pccl_array((size_t)total, sizeof *tasks->succ) : NULL;
  if (tasks->succ == NULL) {
    free(degree);
    return pccl_no_memory("the schedule");
  }
  for (size_t i = 0; i < tasks->count; i++) {
    fill_edges(tasks, i, degree);
  }
  free(degree);
  for (size_t i = tasks->count; i-- > 0;) {
    int32_t longest = 0;
    for (int32_t k = tasks->task[i].succ; k < tasks->task[i + 1].succ; k++) {
      int32_t path = tasks->task[tasks->succ[k]].path;
      longest = path > longest ? path : longest;
    }
    tasks->task[i].path = longest + 1;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result find_tasks(pccl_tasks *tasks) {
  pccl_ir *ir = tasks->ir;
  size_t nodes = ir->nodes.len;
  tasks->task = pccl_zeroed(nodes + 1, sizeof *tasks->task);
  tasks->task_of_node = pccl_array(nodes, sizeof *tasks->task_of_node);
  if (tasks->task == NULL || tasks->task_of_node == NULL) {
    return pccl_no_memory("the schedule");
  }
  for (size_t i = 0; i < nodes; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    if (node->from >= 0) {
      tasks->task_of_node[i] = tasks->task_of_node[node->from];
      continue;
    }
    pccl_task *task = &tasks->task[tasks->count];
    task->node = (int32_t)i;
    tasks->task_of_node[i] = (int32_t)tasks->count++;
    if (node->to >= 0) {
      PCCL_TRY(pccl_links_between(&tasks->route, tasks->topology, node->rank, ir->nodes.data[node->to].rank,
                                  &task->route, &task->links));
    }
  }
  PCCL_TRY(find_chunks(tasks));
  return find_edges(tasks);
}

polyccl_result pccl_tasks_build(pccl_ir *ir, const polyccl_topology *topology, pccl_tasks *tasks) {
  *tasks = (pccl_tasks){.ir = ir, .topology = topology};
  PCCL_TRY(find_capacities(tasks));
  return find_tasks(tasks);
}
