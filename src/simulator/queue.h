/* The event queue: a 4-ary heap of (time, id), each id at most once. The time of an entry can be changed. Entries
 * of equal times leave in the order of their ids, so that a simulation does not depend on the history of the heap. It
 * is a header because it is the inner loop. */
#ifndef PCCL_SIMULATOR_QUEUE_H
#define PCCL_SIMULATOR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_event {
  int64_t time;
  int32_t id;
} sim_event;

typedef struct sim_queue {
  sim_event *heap; /* [ids] */
  int32_t *place;  /* [ids]; -1: not queued */
  int32_t count;
} sim_queue;

static inline bool sim_earlier(sim_event a, sim_event b) {
  return a.time < b.time || (a.time == b.time && a.id < b.id);
}

static inline void sim_queue_up(sim_queue *q, int32_t at, sim_event event) {
  while (at > 0) {
    int32_t parent = (at - 1) / 4;
    if (!sim_earlier(event, q->heap[parent])) {
      break;
    }
    q->heap[at] = q->heap[parent];
    q->place[q->heap[at].id] = at;
    at = parent;
  }
  q->heap[at] = event;
  q->place[event.id] = at;
}

static inline void sim_queue_down(sim_queue *q, int32_t at, sim_event event) {
  for (;;) {
    int32_t child = 4 * at + 1, last = child + 4 < q->count ? child + 4 : q->count;
    if (child >= last) {
      break;
    }
    int32_t first = child;
    for (int32_t i = child + 1; i < last; i++) {
      if (sim_earlier(q->heap[i], q->heap[first])) {
        first = i;
      }
    }
    if (!sim_earlier(q->heap[first], event)) {
      break;
    }
    q->heap[at] = q->heap[first];
    q->place[q->heap[at].id] = at;
    at = first;
  }
  q->heap[at] = event;
  q->place[event.id] = at;
}

static inline void sim_queue_remove(sim_queue *q, int32_t id) {
  int32_t at = q->place[id];
  if (at < 0) {
    return;
  }
  q->place[id] = -1;
  sim_event last = q->heap[--q->count];
  if (last.id == id) {
    return;
  }
  if (at > 0 && sim_earlier(last, q->heap[(at - 1) / 4])) {
    sim_queue_up(q, at, last);
  } else {
    sim_queue_down(q, at, last);
  }
}

/* Puts `id` at `time`, wherever it was before. */
static inline void sim_queue_put(sim_queue *q, int32_t id, int64_t time) {
  sim_event event = {time, id};
  int32_t at = q->place[id];
  if (at < 0) {
    sim_queue_up(q, q->count++, event);
  } else if (sim_earlier(event, q->heap[at])) {
    sim_queue_up(q, at, event);
  } else {
    sim_queue_down(q, at, event);
  }
}

#endif
