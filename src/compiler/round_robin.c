/* The baseline of ResCCL's evaluation takes the same tasks chunk after chunk in turn. The chunk whose turn it is gives
 * its oldest ready task. When that does not fit into the current sub-pipeline, the next one is opened for it. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/task.h"

typedef struct turns {
  const pccl_tasks *tasks;
  pccl_pipeline *out;
  int32_t *missing;
  int32_t *used;          /* [links] */
  int32_t *first, *last;  /* [chunks] ready tasks of a chunk, linked by `next`; -1: none */
  int32_t *next;          /* [tasks] */
  PCCL_VEC(int32_t) ring; /* chunks with ready tasks, in turn, from `turn` on */
  size_t turn;
  PCCL_VEC(int32_t) touched;
  size_t placed;
} turns;

static bool make_ready(turns *t, int32_t task) {
  int32_t chunk = t->tasks->task[task].chunk;
  t->next[task] = -1;
  if (t->first[chunk] >= 0) {
    t->next[t->last[chunk]] = task;
    t->last[chunk] = task;
    return true;
  }
  t->first[chunk] = t->last[chunk] = task;
  return pccl_vec_push(&t->ring, chunk);
}

static bool task_fits(const turns *t, int32_t number) {
  const pccl_task *task = &t->tasks->task[number];
  for (int32_t i = 0; i < task->links; i++) {
    int32_t link = t->tasks->route.link.data[task->route + i];
    if (t->used[link] >= t->tasks->capacity[link]) {
      return false;
    }
  }
  return true;
}

static bool close_pipeline(turns *t, size_t *first) {
  for (size_t i = 0; i < t->touched.len; i++) {
    t->used[t->touched.data[i]] = 0;
  }
  t->touched.len = 0;
  for (; *first < t->placed; (*first)++) {
    const pccl_task *task = &t->tasks->task[t->out->sequence[*first]];
    for (int32_t k = task->succ; k < task[1].succ; k++) {
      if (--t->missing[t->tasks->succ[k]] == 0 && !make_ready(t, t->tasks->succ[k])) {
        return false;
      }
    }
  }
  t->out->pipelines++;
  return true;
}

static bool place_task(turns *t, int32_t number) {
  const pccl_task *task = &t->tasks->task[number];
  t->out->of_task[number] = t->out->pipelines;
  t->out->sequence[t->placed++] = number;
  for (int32_t i = 0; i < task->links; i++) {
    int32_t link = t->tasks->route.link.data[task->route + i];
    if (t->used[link]++ == 0 && !pccl_vec_push(&t->touched, link)) {
      return false;
    }
  }
  return true;
}

static bool run_round_robin(turns *t) {
  size_t count = t->tasks->count, closed = 0;
  for (size_t i = 0; i < count; i++) {
    t->missing[i] = t->tasks->task[i].preds;
    if (t->missing[i] == 0 && !make_ready(t, (int32_t)i)) {
      return false;
    }
  }
  while (t->placed < count) {
    if (t->turn == t->ring.len) {
      if (!close_pipeline(t, &closed)) {
        return false;
      }
      continue;
    }
    int32_t chunk = t->ring.data[t->turn];
    int32_t task = t->first[chunk];
    if (!task_fits(t, task)) {
      if (!close_pipeline(t, &closed)) {
        return false;
      }
      continue;
    }
    t->turn++;
    t->first[chunk] = t->next[task];
    if (!place_task(t, task) || (t->first[chunk] >= 0 && !pccl_vec_push(&t->ring, chunk))) {
      return false;
    }
  }
  return close_pipeline(t, &closed);
}

polyccl_result pccl_schedule_round_robin(const pccl_tasks *tasks, int32_t max_tbs, pccl_pipeline *pipeline) {
  (void)max_tbs; /* the baseline does not bound thread blocks */
  size_t count = tasks->count, chunks = (size_t)tasks->chunks;
  *pipeline =
      (pccl_pipeline){.of_task = pccl_array(count, sizeof(int32_t)), .sequence = pccl_array(count, sizeof(int32_t))};
  turns t = {.tasks = tasks,
             .out = pipeline,
             .missing = pccl_array(count, sizeof *t.missing),
             .used = pccl_zeroed(tasks->topology->links, sizeof *t.used),
             .first = pccl_array(chunks, sizeof *t.first),
             .last = pccl_array(chunks, sizeof *t.last),
             .next = pccl_array(count, sizeof *t.next)};
  bool ok = pipeline->of_task != NULL && pipeline->sequence != NULL && t.missing != NULL && t.used != NULL &&
            t.first != NULL && t.last != NULL && t.next != NULL;
  if (ok) {
    memset(t.first, 0xff, chunks * sizeof *t.first);
    ok = run_round_robin(&t);
  }
  free(t.missing);
  free(t.used);
  free(t.first);
  free(t.last);
  free(t.next);
  pccl_vec_free(&t.ring);
  pccl_vec_free(&t.touched);
  if (!ok) {
    pccl_pipeline_free(pipeline);
    return pccl_no_memory("the schedule");
  }
  return POLYCCL_SUCCESS;
}
