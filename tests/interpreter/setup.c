/* Checks a plan as far as the machine must, and makes the machine of a call. */
#include <stdlib.h>

#include "machine.h"
#include "table.h"

static bool inside(const machine *m, int32_t rank, uint8_t buffer, int32_t first, int32_t count) {
  int32_t size = buffer == POLYCCL_BUF_INPUT    ? table_inputs(m->plan)
                 : buffer == POLYCCL_BUF_OUTPUT ? table_outputs(m->plan)
                                                : m->plan->rank[rank].scratch;
  return buffer <= POLYCCL_BUF_SCRATCH && first >= 0 && count >= 1 && (int64_t)first + count <= size;
}

static bool connection_fits(const polyccl_plan *p, int32_t connection, int32_t rank, bool sending) {
  return connection >= 0 && (size_t)connection < p->connections &&
         (sending ? p->connection[connection].src : p->connection[connection].dst) == rank;
}

/* What the run indexes with; the arrays themselves are taken to be whole. */
static bool check_step(machine *m, int32_t rank, const polyccl_step *step) {
  const polyccl_plan *p = m->plan;
  if (step->op >= POLYCCL_STEP_OP_COUNT ||
      (op_uses_source(step->op) && !inside(m, rank, step->src_buf, step->src, step->count)) ||
      (op_stores(step->op) && !inside(m, rank, step->dst_buf, step->dst, step->count)) ||
      (step->op != POLYCCL_STEP_NOP && step->count < 1)) {
    return machine_failed(m, INTERPRETER_BROKEN, "rank %d: a step leaves its buffers", rank);
  }
  if (op_stores(step->op) && step->dst_buf == POLYCCL_BUF_INPUT && !p->inplace) {
    return machine_failed(m, INTERPRETER_BROKEN, "rank %d: a step writes the input out of place", rank);
  }
  if ((op_receives(step->op) && !connection_fits(p, step->recv, rank, false)) ||
      (op_sends(step->op) && !connection_fits(p, step->send, rank, true))) {
    return machine_failed(m, INTERPRETER_BROKEN, "rank %d: a step has no such connection", rank);
  }
  for (int32_t w = step->wait; w < step->wait + step->waits; w++) {
    if (p->wait[w].tb < 0 || p->wait[w].tb >= p->rank[rank].tbs || p->wait[w].step < 0 ||
        p->wait[w].step >= p->tb[p->rank[rank].tb + p->wait[w].tb].steps) {
      return machine_failed(m, INTERPRETER_BROKEN, "rank %d: a step waits for none", rank);
    }
  }
  return true;
}

static bool check_head(machine *m) {
  const polyccl_plan *p = m->plan;
  bool pair = p->collective == POLYCCL_SENDRECV;
  if ((table_has_root(p) && (p->root < 0 || p->root >= p->ranks)) || (pair && (p->peer < 0 || p->peer >= p->ranks))) {
    return machine_failed(m, INTERPRETER_BROKEN, "no such root or peer");
  }
  return !(pair && p->inplace) || machine_failed(m, INTERPRETER_BROKEN, "sendrecv in place");
}

static bool check_steps(machine *m) {
  for (int32_t r = 0; r < m->plan->ranks; r++) {
    if (m->plan->rank[r].scratch < 0) {
      return machine_failed(m, INTERPRETER_BROKEN, "rank %d has %d chunks of scratch", r, m->plan->rank[r].scratch);
    }
  }
  for (size_t t = 0; t < m->plan->tbs; t++) {
    const polyccl_thread_block *tb = &m->plan->tb[t];
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      if (!check_step(m, tb->rank, &m->plan->step[s])) {
        return false;
      }
    }
  }
  return true;
}

/* Who marks what cannot go by reference: rrs leaves its message nowhere, rrc and rrcs add before they store. */
static bool check_marks(machine *m) {
  for (size_t s = 0; s < m->plan->steps; s++) {
    const polyccl_step *step = &m->plan->step[s];
    bool get = (step->flags & POLYCCL_FLAG_GET) != 0, put = (step->flags & POLYCCL_FLAG_PUT) != 0;
    if ((get && (!op_sends(step->op) || step->op == POLYCCL_STEP_RRS)) ||
        (put && step->op != POLYCCL_STEP_RECV && step->op != POLYCCL_STEP_RCS)) {
      return machine_failed(m, INTERPRETER_BROKEN, "step %zu has a mark that its op cannot have", s);
    }
  }
  return true;
}

static bool make_fifos(machine *m) {
  const polyccl_plan *p = m->plan;
  for (size_t s = 0; s < p->steps; s++) {
    if (op_receives(p->step[s].op)) {
      m->fifo[p->step[s].recv].receives++;
    }
  }
  for (size_t c = 0; c < p->connections; c++) {
    m->fifo[c].receive = calloc((size_t)m->fifo[c].receives + 1, sizeof *m->fifo[c].receive);
    m->fifo[c].receives = 0;
    if (m->fifo[c].receive == NULL) {
      return machine_failed(m, INTERPRETER_NO_MEMORY, "no memory");
    }
  }
  for (size_t t = 0; t < p->tbs; t++) {
    for (int32_t s = p->tb[t].step; s < p->tb[t].step + p->tb[t].steps; s++) {
      if (op_receives(p->step[s].op)) {
        fifo *f = &m->fifo[p->step[s].recv];
        f->receive[f->receives++] = &p->step[s];
      }
    }
  }
  return true;
}

bool machine_check(machine *m) { return check_head(m) && check_steps(m) && check_marks(m); }

bool machine_make(machine *m) {
  const polyccl_plan *p = m->plan;
  m->worker = calloc(p->tbs + 1, sizeof *m->worker);
  m->fifo = calloc(p->connections + 1, sizeof *m->fifo);
  m->memory = calloc((size_t)p->ranks, sizeof *m->memory);
  m->entered = calloc((size_t)p->ranks, sizeof *m->entered);
  m->lent = calloc((size_t)p->ranks, sizeof *m->lent);
  if (m->worker == NULL || m->fifo == NULL || m->memory == NULL || m->entered == NULL || m->lent == NULL) {
    return machine_failed(m, INTERPRETER_NO_MEMORY, "no memory");
  }
  return make_fifos(m);
}

size_t machine_elements(const machine *m, int32_t rank) {
  return (size_t)table_cells(m->plan, rank) * (size_t)m->options.micro_batches;
}

void machine_fill(machine *m, int32_t rank) {
  const polyccl_plan *p = m->plan;
  for (int32_t k = 0; k < table_inputs(p); k++) {
    for (int32_t b = 0; b < m->options.micro_batches; b++) {
      element leaf = {.number = table_leaf(&m->options, rank, k, b), .held = true};
      machine_store(m, rank, POLYCCL_BUF_INPUT, k, b, leaf);
    }
  }
  for (size_t i = 0; i < p->absents; i++) {
    for (int32_t b = 0; p->absent[i].rank == rank && b < m->options.micro_batches; b++) {
      machine_store(m, rank, POLYCCL_BUF_INPUT, p->absent[i].chunk, b, (element){0});
    }
  }
}

bool machine_check_outputs(machine *m, int32_t rank) {
  const polyccl_plan *p = m->plan;
  for (int32_t k = 0; k < table_outputs(p); k++) {
    for (int32_t b = 0; b < m->options.micro_batches; b++) {
      uint64_t number;
      const element *found = machine_element(m, rank, POLYCCL_BUF_OUTPUT, k, b);
      if (machine_exists(m, POLYCCL_BUF_OUTPUT, k, b) && table_wanted(p, &m->options, rank, k, b, &number) &&
          (!found->held || found->number != number)) {
        return machine_failed(m, INTERPRETER_WRONG, "rank %d output[%d] is wrong in micro-batch %d", rank, k, b);
      }
    }
  }
  return true;
}

void machine_drain(ring *r) {
  while (r->first != NULL) {
    message *next = r->first->next;
    free(r->first);
    r->first = next;
  }
}

void machine_dispose(machine *m) {
  for (size_t t = 0; m->worker != NULL && t < m->plan->tbs; t++) {
    free(m->worker[t].in);
    free(m->worker[t].out);
    free(m->worker[t].result);
  }
  for (size_t c = 0; m->fifo != NULL && c < m->plan->connections; c++) {
    free(m->fifo[c].receive);
  }
  free(m->worker);
  free(m->fifo);
  free(m->memory);
  free(m->entered);
  free(m->lent);
}
