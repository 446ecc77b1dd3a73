/* Is one step certain to end before another starts, by any path of thread-block order, waits and messages?
 *
 * First a search backwards from the later step, which stops at steps whose longest chain is no longer than that of the
 * earlier one (they cannot come after it). It is given up after a bounded number of steps. Questions about one later
 * step share a search. Those left over are answered together by sweeps: one pass over all steps in topological order
 * tells for each step the last step of one given thread block that comes before it. The work of both is counted and
 * bounded. */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/verify.h"

enum { SEARCH_STEPS = 2048, NO_STEP = -1 };

/* Steps of a thread block that are to be visited, from the last on; count 0: as many as are not yet seen. */
struct run {
  int32_t last, count;
};

typedef struct pccl_reach {
  const pccl_verify *v;
  int32_t *seen;              /* [tbs] steps of the thread block below this index are visited or being visited */
  PCCL_VEC(struct run) stack; /* to go on from */
  PCCL_VEC(int32_t) dirty;    /* thread blocks with `seen` set */
  size_t work;                /* steps looked at so far */
} reach;

typedef enum answer { NO, YES, UNKNOWN, NO_MEMORY } answer;

bool pccl_reach_exhausted(const pccl_reach *r) { return r->work > PCCL_VERIFY_MAX_REACH; }

static bool push_step_run(reach *r, int32_t s, int32_t level) {
  if (r->v->level[s] <= level) {
    return true;
  }
  int32_t tb = r->v->step_tb[s], index = pccl_verify_index(r->v, (size_t)s);
  if (index < r->seen[tb]) {
    return true;
  }
  return pccl_vec_push(&r->stack, (struct run){.last = s});
}

/* Pushes what leads to step `s` from other thread blocks. */
static bool push_predecessors(reach *r, int32_t s, int32_t level) {
  const pccl_verify *v = r->v;
  const polyccl_step *step = &v->plan->step[s];
  int32_t rank = pccl_verify_rank(v, (size_t)s);
  for (int32_t w = 0; w < step->waits; w++) {
    if (!push_step_run(r, pccl_verify_awaited(v, rank, &v->plan->wait[step->wait + w]), level)) {
      return false;
    }
  }
  return v->from[s] < 0 || push_step_run(r, v->from[s], level);
}

/* Visits what comes before `after` and has a chain longer than `level`, until it meets `wanted` (NO_STEP: until there
 * is no more) or has looked at `limit` steps. What it met is below `seen`. A step's way to other thread blocks is
 * followed before the steps that come before it in its own: a way back through many ranks is found in as many steps. */
static answer search_backwards(reach *r, int32_t after, int32_t level, int32_t wanted, size_t limit) {
  const pccl_verify *v = r->v;
  size_t visited = 0;
  if (!push_step_run(r, after, level)) {
    return NO_MEMORY;
  }
  while (r->stack.len > 0) {
    struct run at = r->stack.data[--r->stack.len];
    int32_t s = at.last, tb = v->step_tb[s];
    if (wanted != NO_STEP && tb == v->step_tb[wanted] && s >= wanted) {
      return YES;
    }
    if (r->seen[tb] == 0 && !pccl_vec_push(&r->dirty, tb)) {
      return NO_MEMORY;
    }
    if (at.count == 0) {
      int32_t low = r->seen[tb], index = pccl_verify_index(v, (size_t)s);
      r->seen[tb] = index >= low ? index + 1 : low;
      at.count = index + 1 - low;
    }
    if (at.count <= 0 || v->level[s] <= level) {
      continue;
    }
    r->work++;
    if (++visited > limit) {
      return UNKNOWN;
    }
    if ((at.count > 1 && !pccl_vec_push(&r->stack, (struct run){s - 1, at.count - 1})) ||
        !push_predecessors(r, s, level)) {
      return NO_MEMORY;
    }
  }
  return NO;
}

static void reset_search(reach *r) {
  for (size_t i = 0; i < r->dirty.len; i++) {
    r->seen[r->dirty.data[i]] = 0;
  }
  r->dirty.len = r->stack.len = 0;
}

static answer ask_one_query(reach *r, int32_t before, int32_t after) {
  r->work++;
  /* The level is that of `before` minus 1, so that it is visited itself. */
  answer found =
      pccl_reach_exhausted(r) ? UNKNOWN : search_backwards(r, after, r->v->level[before] - 1, before, SEARCH_STEPS);
  reset_search(r);
  return found;
}

/* query[from .. to), all about one later step: `open` gets the unanswered, *failed the first that is not so. */
static answer ask_queries_of_step(reach *r, const pccl_reach_query *query, size_t from, size_t to, size_t *open,
                                  size_t *opens, size_t *failed) {
  const pccl_verify *v = r->v;
  int32_t level = INT32_MAX;
  for (size_t i = from; i < to; i++) {
    level = v->level[query[i].before] < level ? v->level[query[i].before] : level;
  }
  r->work += to - from;
  int32_t wanted = to - from == 1 ? query[from].before : NO_STEP;
  answer end = UNKNOWN;
  if (!pccl_reach_exhausted(r)) {
    end = search_backwards(r, query[from].after, level - 1, wanted, SEARCH_STEPS * (to - from));
  }
  for (size_t i = from; i < to && end != NO_MEMORY && end != YES && *failed == to; i++) {
    int32_t before = query[i].before;
    if (r->seen[v->step_tb[before]] > pccl_verify_index(v, (size_t)before)) {
      continue; /* met */
    }
    if (end == NO) {
      *failed = i;
    } else {
      open[(*opens)++] = i;
    }
  }
  reset_search(r);
  return end;
}

/* last[s]: the highest index of a step of `tb` that is `s` or comes before it; -1: none. */
static void sweep_thread_block(reach *r, int32_t tb, int32_t *last) {
  const pccl_verify *v = r->v;
  const polyccl_plan *plan = v->plan;
  r->work += plan->steps;
  for (size_t i = 0; i < plan->steps; i++) {
    int32_t s = v->order[i], found = -1, rank = pccl_verify_rank(v, (size_t)s);
    const polyccl_step *step = &plan->step[s];
    if (v->step_tb[s] == tb) {
      last[s] = pccl_verify_index(v, (size_t)s);
      continue;
    }
    if (s > pccl_verify_tb(v, (size_t)s)->step) {
      found = last[s - 1];
    }
    if (v->from[s] >= 0 && last[v->from[s]] > found) {
      found = last[v->from[s]];
    }
    for (int32_t w = 0; w < step->waits; w++) {
      int32_t b = pccl_verify_awaited(v, rank, &plan->wait[step->wait + w]);
      found = last[b] > found ? last[b] : found;
    }
    last[s] = found;
  }
}

/* query[open[i]] for all i, of which the first that is not so. */
static polyccl_result sweep_open_queries(reach *r, const pccl_reach_query *query, size_t *open, size_t count,
                                         size_t *failed) {
  const pccl_verify *v = r->v;
  int32_t *last = pccl_array(v->plan->steps, sizeof *last);
  if (last == NULL) {
    return pccl_verify_no_memory(r->v, "finding what orders the steps");
  }
  while (count > 0 && !pccl_reach_exhausted(r)) {
    int32_t tb = v->step_tb[query[open[0]].before];
    sweep_thread_block(r, tb, last);
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
      const pccl_reach_query *q = &query[open[i]];
      if (v->step_tb[q->before] != tb) {
        open[left++] = open[i];
      } else if (last[q->after] < pccl_verify_index(v, (size_t)q->before) && open[i] < *failed) {
        *failed = open[i];
      }
    }
    count = left;
  }
  free(last);
  if (count == 0) {
    return POLYCCL_SUCCESS;
  }
  return pccl_fail(POLYCCL_ERROR_LIMIT,
                   "the order of the steps depends on more ways through other ranks than the verifier "
                   "follows; waits within the rank would state it directly");
}

static polyccl_result answer_all_queries(reach *r, const pccl_reach_query *query, size_t count, size_t *open,
                                         size_t *failed) {
  size_t opens = 0;
  *failed = count;
  for (size_t i = 0, end; i < count && *failed == count; i = end) {
    for (end = i + 1; end < count && query[end].after == query[i].after;) {
      end++;
    }
    size_t first_failed = end;
    if (ask_queries_of_step(r, query, i, end, open, &opens, &first_failed) == NO_MEMORY) {
      return pccl_verify_no_memory(r->v, "finding what orders the steps");
    }
    *failed = first_failed < end ? first_failed : count;
  }
  return opens > 0 ? sweep_open_queries(r, query, open, opens, failed) : POLYCCL_SUCCESS;
}

polyccl_result pccl_reach_open(const pccl_verify *v, pccl_reach **opened) {
  reach *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL || (made->seen = pccl_zeroed(v->plan->tbs, sizeof(int32_t))) == NULL) {
    free(made);
    return pccl_verify_no_memory(v, "finding what orders the steps");
  }
  made->v = v;
  *opened = made;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_reach_ask_all(pccl_reach *r, const pccl_reach_query *query, size_t count, size_t *failed) {
  *failed = count;
  if (count == 0) {
    return POLYCCL_SUCCESS;
  }
  size_t *open = pccl_array(count, sizeof *open);
  polyccl_result result = open == NULL ? pccl_verify_no_memory(r->v, "finding what orders the steps")
                                       : answer_all_queries(r, query, count, open, failed);
  free(open);
  return result;
}

polyccl_result pccl_reach_ask(pccl_reach *r, int32_t before, int32_t after, bool *certain) {
  if (before == after) {
    *certain = false;
    return POLYCCL_SUCCESS;
  }
  answer found = ask_one_query(r, before, after);
  *certain = found == YES;
  return found == NO_MEMORY ? pccl_verify_no_memory(r->v, "finding what orders the steps") : POLYCCL_SUCCESS;
}

void pccl_reach_close(pccl_reach *r) {
  if (r != NULL) {
    free(r->seen);
    pccl_vec_free(&r->stack);
    pccl_vec_free(&r->dirty);
    free(r);
  }
}
