/* HPDS (ResCCL, SIGCOMM'25): puts tasks into sub-pipelines. A sub-pipeline holds tasks without data or communication
 * conflict. Of the ready tasks whose links are free, the one whose chunk has moved the fewest times joins the current
 * sub-pipeline. When none fits, the sub-pipeline is closed and the next one opened.
 *
 * Ready tasks wait in a heap of their first link (the sender's port), and a heap of the ports gives the best of all. A
 * task that finds another link full is parked there. When the next sub-pipeline opens, as many of a link's parked tasks
 * come back as the link admits. So a task is looked at once for every time that a link opens for it, and the time is
 * near linear. Counts of chunks only grow, so a key that has become too good is corrected when it comes to the top. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "compiler/task.h"

typedef struct ready_task {
  uint64_t key;
  int32_t task;
} ready_task;

static bool goes_first(const ready_task *a, const ready_task *b) { return a->key < b->key; }

PCCL_HEAP(task_heap, ready_task, goes_first)

typedef struct hpds {
  const pccl_tasks *tasks;
  int32_t max_tbs; /* endpoints of a rank in a sub-pipeline; 0: no bound */
  pccl_pipeline *out;
  int32_t longest;
  int32_t *missing;            /* [tasks] predecessors not in earlier sub-pipelines */
  int32_t *moved;              /* [chunks] tasks placed in closed sub-pipelines */
  int32_t *used;               /* [resources] in the current sub-pipeline: links, then ranks' endpoints */
  int32_t *capacity;           /* [resources] */
  task_heap *ready;            /* [ports] */
  task_heap *parked;           /* [resources] */
  task_heap ports;             /* task: the port */
  PCCL_VEC(int32_t) touched;   /* resources in use */
  PCCL_VEC(int32_t) parked_at; /* resources with parked tasks */
  size_t links, resources;
  size_t placed;
} hpds;

/* The smaller key goes first: 20 bits each of count and path, then 24 of the number. Beyond
 * a million, counts and paths are equal, which costs quality and nothing else. */
static uint64_t key_of_task(const hpds *h, int32_t number) {
  enum { BITS = 20, MAX_KEY = (1 << BITS) - 1, TIE = 24 };
  const pccl_task *task = &h->tasks->task[number];
  uint64_t count = (uint64_t)(h->moved[task->chunk] < MAX_KEY ? h->moved[task->chunk] : MAX_KEY);
  uint64_t path = (uint64_t)(h->longest - task->path < MAX_KEY ? h->longest - task->path : MAX_KEY);
  return (count << (BITS + TIE)) | (path << TIE) | ((uint64_t)number & ((1u << TIE) - 1));
}

static int32_t port_of(const hpds *h, int32_t task) {
  return h->tasks->task[task].links > 0 ? h->tasks->route.link.data[h->tasks->task[task].route] : (int32_t)h->links;
}

static bool make_ready(hpds *h, int32_t task) {
  int32_t port = port_of(h, task);
  ready_task e = {key_of_task(h, task), task};
  /* The port stands in the heap of ports once for each entry that was its best when it came. */
  bool best = h->ready[port].len == 0 || e.key < h->ready[port].data[0].key;
  return task_heap_push(&h->ready[port], e) && (!best || task_heap_push(&h->ports, (ready_task){e.key, port}));
}

/* The resources of a task: its links, and an endpoint of each of its ranks where thread blocks are bounded. */
static int32_t resource_of_task(const hpds *h, int32_t number, int32_t i) {
  const pccl_task *task = &h->tasks->task[number];
  if (i < task->links) {
    return h->tasks->route.link.data[task->route + i];
  }
  const pccl_node *node = &h->tasks->ir->nodes.data[task->node];
  int32_t which = i - task->links;
  if (h->max_tbs == 0 || which > 1 || (which == 1 && node->to < 0)) {
    return -1;
  }
  return (int32_t)h->links + (which == 0 ? node->rank : h->tasks->ir->nodes.data[node->to].rank);
}

static int32_t full_resource(const hpds *h, int32_t task) {
  for (int32_t i = 0;; i++) {
    int32_t r = resource_of_task(h, task, i);
    if (r < 0) {
      return -1;
    }
    if (h->used[r] >= h->capacity[r]) {
      return r;
    }
  }
}

static bool place_task(hpds *h, int32_t task) {
  h->out->of_task[task] = h->out->pipelines;
  h->out->sequence[h->placed++] = task;
  for (int32_t i = 0;; i++) {
    int32_t r = resource_of_task(h, task, i);
    if (r < 0) {
      return true;
    }
    if (h->used[r]++ == 0 && !pccl_vec_push(&h->touched, r)) {
      return false;
    }
  }
}

static bool park_task(hpds *h, int32_t task, int32_t where) {
  return (h->parked[where].len > 0 || pccl_vec_push(&h->parked_at, where)) &&
         task_heap_push(&h->parked[where], (ready_task){key_of_task(h, task), task});
}

/* Places the tasks that fit, best first, until every port is empty or full. */
static bool fill_pipeline(hpds *h) {
  while (h->ports.len > 0) {
    int32_t port = task_heap_pop(&h->ports).task;
    task_heap *ready = &h->ready[port];
    if (ready->len == 0) {
      continue;
    }
    ready_task best = task_heap_pop(ready);
    uint64_t key = key_of_task(h, best.task);
    bool ok = true;
    if (key > best.key) {
      ok = task_heap_push(ready, (ready_task){key, best.task});
    } else {
      int32_t full = full_resource(h, best.task);
      if (full == port && (size_t)port < h->links) {
        ok = task_heap_push(ready, best); /* the port is full until the next sub-pipeline */
        if (!ok) {
          return false;
        }
        continue;
      }
      ok = full < 0 ? place_task(h, best.task) : park_task(h, best.task, full);
    }
    if (!ok || (ready->len > 0 && !task_heap_push(&h->ports, (ready_task){ready->data[0].key, port}))) {
      return false;
    }
  }
  return true;
}

/* Frees the links, counts the placed tasks, and makes parked tasks and successors ready. */
static bool close_pipeline(hpds *h, size_t first) {
  for (size_t i = 0; i < h->touched.len; i++) {
    int32_t r = h->touched.data[i];
    h->used[r] = 0;
    if ((size_t)r < h->links && h->ready[r].len > 0 &&
        !task_heap_push(&h->ports, (ready_task){h->ready[r].data[0].key, r})) {
      return false;
    }
  }
  h->touched.len = 0;
  for (size_t i = first; i < h->placed; i++) {
    h->moved[h->tasks->task[h->out->sequence[i]].chunk]++;
  }
  size_t parked_at = h->parked_at.len;
  h->parked_at.len = 0;
  for (size_t i = 0; i < parked_at; i++) {
    int32_t where = h->parked_at.data[i];
    for (int32_t k = 0; k < h->capacity[where] && h->parked[where].len > 0; k++) {
      if (!make_ready(h, task_heap_pop(&h->parked[where]).task)) {
        return false;
      }
    }
    if (h->parked[where].len > 0) {
      h->parked_at.data[h->parked_at.len++] = where;
    }
  }
  for (size_t i = first; i < h->placed; i++) {
    const pccl_task *task = &h->tasks->task[h->out->sequence[i]];
    for (int32_t k = task->succ; k < task[1].succ; k++) {
      int32_t next = h->tasks->succ[k];
      if (--h->missing[next] == 0 && !make_ready(h, next)) {
        return false;
      }
    }
  }
  h->out->pipelines++;
  return true;
}

static polyccl_result run_hpds(hpds *h) {
  size_t count = h->tasks->count;
  for (size_t i = 0; i < count; i++) {
    h->missing[i] = h->tasks->task[i].preds;
    h->longest = h->tasks->task[i].path > h->longest ? h->tasks->task[i].path : h->longest;
  }
  for (size_t i = 0; i < count; i++) {
    if (h->missing[i] == 0 && !make_ready(h, (int32_t)i)) {
      return pccl_no_memory("the schedule");
    }
  }
  while (h->placed < count) {
    size_t first = h->placed;
    if (!fill_pipeline(h) || !close_pipeline(h, first)) {
      return pccl_no_memory("the schedule");
    }
    if (h->placed == first) {
      return pccl_fail(POLYCCL_ERROR_INTERNAL, "%s: no task fits into an empty sub-pipeline",
                       h->tasks->ir->program->name);
    }
  }
  return POLYCCL_SUCCESS;
}

static void set_capacities(hpds *h) {
  for (size_t i = 0; i < h->links; i++) {
    h->capacity[i] = h->tasks->capacity[i];
  }
  for (size_t i = h->links; i < h->resources; i++) {
    h->capacity[i] = h->max_tbs;
  }
}

polyccl_result pccl_schedule_hpds(const pccl_tasks *tasks, int32_t max_tbs, pccl_pipeline *pipeline) {
  hpds h = {.tasks = tasks, .max_tbs = max_tbs, .out = pipeline, .links = tasks->topology->links};
  h.resources = h.links + (size_t)tasks->ir->spec.ranks;
  *pipeline = (pccl_pipeline){.of_task = pccl_array(tasks->count, sizeof(int32_t)),
                              .sequence = pccl_array(tasks->count, sizeof(int32_t))};
  h.missing = pccl_array(tasks->count, sizeof *h.missing);
  h.moved = pccl_zeroed((size_t)tasks->chunks, sizeof *h.moved);
  h.used = pccl_zeroed(h.resources, sizeof *h.used);
  h.capacity = pccl_array(h.resources, sizeof *h.capacity);
  h.ready = pccl_zeroed(h.links + 1, sizeof *h.ready);
  h.parked = pccl_zeroed(h.resources, sizeof *h.parked);
  polyccl_result result;
  if (pipeline->of_task != NULL && pipeline->sequence != NULL && h.missing != NULL && h.moved != NULL &&
      h.used != NULL && h.capacity != NULL && h.ready != NULL && h.parked != NULL) {
    set_capacities(&h);
    result = run_hpds(&h);
  } else {
    result = pccl_no_memory("the schedule");
  }
  for (size_t i = 0; h.ready != NULL && i <= h.links; i++) {
    free(h.ready[i].data);
  }
  for (size_t i = 0; h.parked != NULL && i < h.resources; i++) {
    free(h.parked[i].data);
  }
  free(h.missing);
  free(h.moved);
  free(h.used);
  free(h.capacity);
  free(h.ready);
  free(h.parked);
  pccl_vec_free(&h.ports);
  pccl_vec_free(&h.touched);
  pccl_vec_free(&h.parked_at);
  if (result != POLYCCL_SUCCESS) {
    pccl_pipeline_free(pipeline);
  }
  return result;
}
