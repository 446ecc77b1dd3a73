#include "plan/contributions.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"

enum { NONE = -1 };

/* The plan is right, so any order that follows thread blocks, waits and messages gives the same numbers; FIFOs are
 * taken to be as deep as they need to be. */
typedef struct execution {
  const polyccl_plan *plan;
  pccl_collective_spec spec;
  pccl_contributions *found;
  int32_t user_cells;
  size_t *cell;            /* [ranks + 1] the first of each rank's cells */
  uint32_t *held;          /* by cell */
  size_t *sent;            /* [steps + 1] where the message of a step begins in `message` */
  uint32_t *message;       /* the messages of all steps that send, by chunk */
  int32_t *next_sent;      /* [steps] the step that sends the connection's next message */
  int32_t *arrived, *last; /* [connections] the steps that sent the first message not yet taken, the last one */
  int32_t *done;           /* [tbs] steps ended */
  /* Thread blocks that can go on, and those that wait for another's step or for a connection's message. */
  PCCL_VEC(int32_t) ready;
  int32_t *sleeper;      /* [tbs] the first of those that wait for this one */
  int32_t *next_sleeper; /* [tbs] */
  int32_t *receiver;     /* [connections] the thread block that waits, or NONE */
} execution;

static void free_counting(execution *e) {
  free(e->cell);
  free(e->held);
  free(e->sent);
  free(e->message);
  free(e->next_sent);
  free(e->arrived);
  free(e->last);
  free(e->done);
  free(e->sleeper);
  free(e->next_sleeper);
  free(e->receiver);
  pccl_vec_free(&e->ready);
}

void pccl_contributions_free(pccl_contributions *c) {
  free(c->first);
  free(c->a);
  free(c->b);
  *c = (pccl_contributions){0};
}

static int32_t *make_none_array(size_t count) {
  int32_t *array = pccl_array(count, sizeof *array);
  for (size_t i = 0; array != NULL && i < count; i++) {
    array[i] = NONE;
  }
  return array;
}

static bool make_count_cells(execution *e) {
  const polyccl_plan *plan = e->plan;
  e->cell = pccl_array((size_t)plan->ranks + 1, sizeof *e->cell);
  if (e->cell == NULL) {
    return false;
  }
  e->user_cells = pccl_collective_cells(&e->spec);
  e->cell[0] = 0;
  for (int32_t r = 0; r < plan->ranks; r++) {
    e->cell[r + 1] = e->cell[r] + (size_t)e->user_cells + (size_t)plan->rank[r].scratch;
  }
  e->held = pccl_zeroed(e->cell[plan->ranks], sizeof *e->held);
  return e->held != NULL;
}

static uint32_t *find_count(execution *e, int32_t rank, uint8_t buffer, int32_t chunk) {
  uint32_t *cells = e->held + e->cell[rank];
  if (buffer == POLYCCL_BUF_SCRATCH) {
    return cells + e->user_cells + chunk;
  }
  return cells + pccl_collective_cell(&e->spec, rank, buffer == POLYCCL_BUF_OUTPUT, chunk);
}

static bool allocate_counting(execution *e) {
  const polyccl_plan *plan = e->plan;
  size_t reduced = 0, sent = 0;
  e->found->first = pccl_array(plan->steps + 1, sizeof *e->found->first);
  e->sent = pccl_array(plan->steps + 1, sizeof *e->sent);
  if (e->found->first == NULL || e->sent == NULL) {
    return false;
  }
  for (size_t i = 0; i < plan->steps; i++) {
    const polyccl_step *step = &plan->step[i];
    e->found->first[i] = reduced;
    e->sent[i] = sent;
    reduced += pccl_ops[step->op].reduces ? (size_t)step->count : 0;
    sent += pccl_ops[step->op].sends ? (size_t)step->count : 0;
  }
  e->found->first[plan->steps] = reduced;
  e->sent[plan->steps] = sent;
  e->found->a = pccl_array(reduced, sizeof *e->found->a);
  e->found->b = pccl_array(reduced, sizeof *e->found->b);
  e->message = pccl_array(sent, sizeof *e->message);
  e->next_sent = make_none_array(plan->steps);
  e->arrived = make_none_array(plan->connections);
  e->last = make_none_array(plan->connections);
  e->receiver = make_none_array(plan->connections);
  e->done = pccl_zeroed(plan->tbs, sizeof *e->done);
  e->sleeper = make_none_array(plan->tbs);
  e->next_sleeper = make_none_array(plan->tbs);
  return e->found->a != NULL && e->found->b != NULL && e->message != NULL && e->next_sent != NULL &&
         e->arrived != NULL && e->last != NULL && e->receiver != NULL && e->done != NULL && e->sleeper != NULL &&
         e->next_sleeper != NULL && pccl_vec_reserve(&e->ready, plan->tbs + 1) && make_count_cells(e);
}

static uint32_t add_contributions(uint32_t a, uint32_t b) {
  return a + b < PCCL_MAX_CONTRIBUTIONS ? a + b : PCCL_MAX_CONTRIBUTIONS;
}

static void count_step(execution *e, int32_t rank, int32_t index) {
  const polyccl_step *step = &e->plan->step[index];
  const pccl_op_traits *op = &pccl_ops[step->op];
  const uint32_t *in = NULL;
  if (op->receives) {
    int32_t sender = e->arrived[step->recv];
    in = e->message + e->sent[sender];
    e->arrived[step->recv] = e->next_sent[sender];
  }
  size_t at = e->found->first[index];
  for (int32_t k = 0; pccl_op_moves(step->op) && k < step->count; k++) {
    uint32_t value = op->reads_src ? *find_count(e, rank, step->src_buf, step->src + k) : in[k];
    if (op->reduces) {
      uint32_t first = op->reads_dst ? *find_count(e, rank, step->dst_buf, step->dst + k) : value;
      uint32_t second = op->reads_dst ? value : in[k];
      e->found->a[at + (size_t)k] = first;
      e->found->b[at + (size_t)k] = second;
      e->found->uniform = e->found->uniform && first == e->found->a[at] && second == e->found->b[at];
      value = add_contributions(first, second);
    }
    if (op->writes_dst) {
      *find_count(e, rank, step->dst_buf, step->dst + k) = value;
    }
    if (op->sends) {
      e->message[e->sent[index] + (size_t)k] = value;
    }
  }
}

static void wake_counted_block(execution *e, int32_t tb) { e->ready.data[e->ready.len++] = tb; }

static void send_counts(execution *e, int32_t index) {
  int32_t connection = e->plan->step[index].send, before = e->last[connection];
  if (before != NONE) {
    e->next_sent[before] = index;
  }
  if (e->arrived[connection] == NONE) {
    e->arrived[connection] = index;
  }
  e->last[connection] = index;
  if (e->receiver[connection] != NONE) {
    wake_counted_block(e, e->receiver[connection]);
    e->receiver[connection] = NONE;
  }
}

/* True: the next step of the thread block cannot run; what it waits for will wake it. */
static bool put_to_sleep(execution *e, int32_t tb, const polyccl_step *step) {
  int32_t first = e->plan->rank[e->plan->tb[tb].rank].tb;
  for (int32_t w = step->wait; w < step->wait + step->waits; w++) {
    int32_t other = first + e->plan->wait[w].tb;
    if (e->done[other] <= e->plan->wait[w].step) {
      e->next_sleeper[tb] = e->sleeper[other];
      e->sleeper[other] = tb;
      return true;
    }
  }
  if (pccl_ops[step->op].receives && e->arrived[step->recv] == NONE) {
    e->receiver[step->recv] = tb;
    return true;
  }
  return false;
}

static void count_block(execution *e, int32_t tb) {
  const polyccl_thread_block *block = &e->plan->tb[tb];
  while (e->done[tb] < block->steps) {
    int32_t index = block->step + e->done[tb];
    const polyccl_step *step = &e->plan->step[index];
    if (put_to_sleep(e, tb, step)) {
      return;
    }
    count_step(e, block->rank, index);
    e->done[tb]++;
    if (pccl_ops[step->op].sends) {
      send_counts(e, index);
    }
    while (e->sleeper[tb] != NONE) {
      int32_t other = e->sleeper[tb];
      e->sleeper[tb] = e->next_sleeper[other];
      wake_counted_block(e, other);
    }
  }
}

static void count_plan(execution *e) {
  const polyccl_plan *plan = e->plan;
  for (int32_t r = 0; r < plan->ranks; r++) {
    for (int32_t k = 0; k < plan->rank[r].input; k++) {
      *find_count(e, r, POLYCCL_BUF_INPUT, k) = 1;
    }
  }
  for (size_t t = 0; t < plan->tbs; t++) {
    wake_counted_block(e, (int32_t)t);
  }
  while (e->ready.len > 0) {
    count_block(e, e->ready.data[--e->ready.len]);
  }
}

polyccl_result pccl_contributions_find(const polyccl_plan *plan, pccl_contributions *contributions) {
  pccl_contributions found = {.uniform = true};
  execution e = {.plan = plan, .spec = pccl_plan_spec(plan), .found = &found};
  bool fits = allocate_counting(&e);
  if (fits) {
    count_plan(&e);
    *contributions = found;
  } else {
    pccl_contributions_free(&found);
  }
  free_counting(&e);
  return fits ? POLYCCL_SUCCESS : pccl_no_memory("the contributions of a plan's reductions");
}
