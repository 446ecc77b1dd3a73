/* No deadlock in task-major order, for any number M of micro-batches.
 *
 * Instance (s, m) is step s for micro-batch m. With D the FIFO depth, the edges are
 *   next     (s, m) -> (s, m + 1)
 *   turn     (s, M - 1) -> (s + 1, 0), in one thread block
 *   wait     (t, m) -> (s, m)
 *   message  (send k, m) -> (receive k, m)
 *   credit   (receive k, m) -> (the send of the connection's message k M + m + D), since a connection carries the
 *            messages of its k-th task for all micro-batches before those of the next: (send k, m + D), or, where
 *            m + D >= M, an instance of a later send
 * A plan is free of deadlock for M if and only if these have no cycle.
 *
 * More micro-batches only make it worse. Map each instance for M to the same one for M + 1. Every edge becomes a path:
 * clear for next, turn, wait, message; a credit leads to message k M + m + D, which for M + 1 has a number of at least
 * k (M + 1) + m + D, and later sends of a connection follow in their thread block. So a cycle for M gives one for
 * M + 1, and a plan is safe for every M if and only if it is for all large ones.
 *
 * For large M only steps matter. Let G have the edges wait, message, back (receive k -> send k: the credit without
 * its + D) and turn. If a cycle of G contains a turn, it happens for large M: from (s, 0) its part up to the next turn
 * needs at most D (number of back edges) micro-batches, `next` fills up to M - 1, and the turn leads to micro-batch 0
 * of the step where the next part starts. A cycle of waits and messages alone happens for each M. Conversely, take a
 * cycle for a large M. The micro-batch grows along next and along a credit within a task, is the same along wait and
 * message, so the cycle is one of waits and messages alone or has a turn or a credit to a later send; that credit is
 * `back` and then turns (the later send follows in the same thread block). So G has such a cycle too.
 *
 * So a plan is safe for all M if and only if waits, messages and turns have no cycle (the caller has shown that) and
 * no strongly connected component of G contains a turn, that is, two successive steps of a thread block. D does not
 * occur: 1 is enough for a safe plan, and no depth saves the others. (A ring of steps that receive and forward is the
 * example: it needs a depth of M.) */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/verify.h"

/* Tarjan's algorithm on the reversed edges (the components are the same), without recursion. */
typedef struct search {
  const pccl_verify *v;
  int32_t *number, *low; /* [steps]; number 0: not yet seen */
  int32_t *component;    /* [steps]; -1: none yet */
  int32_t *edge;         /* [steps] the next edge to follow */
  int32_t *path, *open;  /* [steps] the depth-first path; steps without a component */
  size_t paths, opens;
  int32_t numbers, components;
} search;

/* Edge `i` that leads to step `s`, from its start; -1: no such edge, -2: no more. */
static int32_t find_edge_into(const pccl_verify *v, int32_t s, int32_t i) {
  const polyccl_step *step = &v->plan->step[s];
  switch (i) {
    case 0: return s > pccl_verify_tb(v, (size_t)s)->step ? s - 1 : -1;
    case 1: return v->from[s];
    case 2: return v->to[s];
    default: break;
  }
  if (i - 3 >= step->waits) {
    return -2;
  }
  return pccl_verify_awaited(v, pccl_verify_rank(v, (size_t)s), &v->plan->wait[step->wait + i - 3]);
}

static void enter_step(search *a, int32_t s) {
  a->number[s] = a->low[s] = ++a->numbers;
  a->component[s] = -1;
  a->edge[s] = 0;
  a->path[a->paths++] = s;
  a->open[a->opens++] = s;
}

static void leave_step(search *a, int32_t s) {
  a->paths--;
  if (a->low[s] == a->number[s]) {
    int32_t member;
    do {
      member = a->open[--a->opens];
      a->component[member] = a->components;
    } while (member != s);
    a->components++;
  }
  if (a->paths > 0) {
    int32_t parent = a->path[a->paths - 1];
    a->low[parent] = a->low[s] < a->low[parent] ? a->low[s] : a->low[parent];
  }
}

static void find_components(search *a) {
  for (size_t root = 0; root < a->v->plan->steps; root++) {
    if (a->number[root] != 0) {
      continue;
    }
    enter_step(a, (int32_t)root);
    while (a->paths > 0) {
      int32_t s = a->path[a->paths - 1];
      int32_t from = find_edge_into(a->v, s, a->edge[s]++);
      if (from == -2) {
        leave_step(a, s);
      } else if (from >= 0 && a->number[from] == 0) {
        enter_step(a, from);
      } else if (from >= 0 && a->component[from] < 0 && a->number[from] < a->low[s]) {
        a->low[s] = a->number[from];
      }
    }
  }
}

/* `late` and the step before it are in one component: shows a shortest way from `late` back to the step before. */
static polyccl_result report_task_cycle(search *a, int32_t late) {
  const pccl_verify *v = a->v;
  int32_t *after = a->number, *queue = a->path, early = late - 1; /* done with: used anew */
  size_t head = 0, tail = 0;
  for (size_t s = 0; s < v->plan->steps; s++) {
    after[s] = -1;
  }
  queue[tail++] = early;
  while (after[late] < 0) {
    int32_t s = queue[head++], from;
    for (int32_t i = 0; (from = find_edge_into(v, s, i)) != -2; i++) {
      if (from >= 0 && from != early && after[from] < 0 && a->component[from] == a->component[late]) {
        after[from] = s;
        queue[tail++] = from;
      }
    }
  }
  enum { MAX_LISTED = 7 };
  char text[2048];
  size_t at = 0;
  int32_t steps = 0;
  for (int32_t s = late; s != early; s = after[s], steps++) {
    if (steps < MAX_LISTED && at < sizeof text) {
      at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", steps > 0 ? " before " : "",
                             pccl_verify_name(v, s).text);
    }
  }
  char more[48] = "";
  if (steps > MAX_LISTED) {
    snprintf(more, sizeof more, " before %d more steps", steps - MAX_LISTED);
  }
  return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_step_location(v->plan, &v->plan->step[late]),
                      "deadlock in task-major order with many micro-batches, whatever the FIFO depth: %s%s before the "
                      "last micro-batch of %s, which its thread block runs first",
                      text, more, pccl_verify_name(v, early).text);
}

polyccl_result pccl_verify_tasks(const pccl_verify *v) {
  size_t steps = v->plan->steps;
  search a = {.v = v,
              .number = pccl_zeroed(steps, sizeof(int32_t)),
              .low = pccl_array(steps, sizeof(int32_t)),
              .component = pccl_array(steps, sizeof(int32_t)),
              .edge = pccl_array(steps, sizeof(int32_t)),
              .path = pccl_array(steps, sizeof(int32_t)),
              .open = pccl_array(steps, sizeof(int32_t))};
  polyccl_result result = POLYCCL_SUCCESS;
  if (a.number == NULL || a.low == NULL || a.component == NULL || a.edge == NULL || a.path == NULL || a.open == NULL) {
    result = pccl_verify_no_memory(v, "finding cycles of the steps");
  } else {
    find_components(&a);
    for (size_t s = 1; s < steps && result == POLYCCL_SUCCESS; s++) {
      if (v->step_tb[s] == v->step_tb[s - 1] && a.component[s] == a.component[s - 1]) {
        result = report_task_cycle(&a, (int32_t)s);
      }
    }
  }
  free(a.number);
  free(a.low);
  free(a.component);
  free(a.edge);
  free(a.path);
  free(a.open);
  return result;
}
