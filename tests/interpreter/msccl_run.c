#include "msccl_model.h"

static void number_transfers(loader *l, const block *b) {
  int step = 0, plan_step = 0;
  for (int i = b->transfer; i < b->transfer + b->transfers; i++) {
    transfer *t = &l->transfer.data[i];
    step += t->waits > 0 ? t->waits - 1 : 0;
    step += t->reductions > 0 ? t->reductions - 1 : 0;
    t->number = step++;
    plan_step += (t->reductions > 0 ? t->reductions : 1) * (l->single ? t->count : 1);
    t->last = plan_step - 1;
  }
}

/* The plan step whose end is the first announcement of `number` or more. */
static bool awaited_step(loader *l, polyccl_wait wait, polyccl_wait *found) {
  if (wait.tb < l->blocks) {
    const block *b = &l->block[wait.tb];
    for (int i = b->transfer; i < b->transfer + b->transfers; i++) {
      const transfer *t = &l->transfer.data[i];
      if (t->announces && t->number >= wait.step) {
        *found = (polyccl_wait){wait.tb, t->last};
        return true;
      }
    }
  }
  return refuse(l, "hangs: nothing announces step %d of thread block %d", wait.step, wait.tb);
}

static int32_t connect(loader *l, int src, int dst, int channel) {
  for (size_t i = 0; i < l->connection.len; i++) {
    const polyccl_connection *c = &l->connection.data[i];
    if (c->src == src && c->dst == dst && c->channel == channel) {
      return (int32_t)i;
    }
  }
  return pccl_vec_push(&l->connection, (polyccl_connection){src, dst, channel}) ? (int32_t)l->connection.len - 1 : -1;
}

static bool add_step(loader *l, const block *b, const transfer *t, int from, int chunk, int count) {
  int op = t->op;
  bool sends = op == POLYCCL_STEP_SEND || op == POLYCCL_STEP_RCS || op == POLYCCL_STEP_RRCS || op == POLYCCL_STEP_RRS;
  bool local = op == POLYCCL_STEP_COPY || op == POLYCCL_STEP_REDUCE;
  polyccl_step step = {.op = (uint8_t)op,
                       .src_buf = (uint8_t)t->src_buf,
                       .dst_buf = (uint8_t)t->dst_buf,
                       .src = from + chunk,
                       .dst = t->dst + chunk,
                       .count = count,
                       .recv = -1,
                       .send = -1,
                       .wait = (int32_t)l->plan_wait.len,
                       .location = -1};
  if (sends) {
    step.send = connect(l, l->rank, b->send, b->channel);
  }
  if (op != POLYCCL_STEP_SEND && !local) {
    step.recv = connect(l, b->recv, l->rank, b->channel);
  }
  l->tb.data[l->tb.len - 1].steps++;
  return pccl_vec_push(&l->step, step) || refuse(l, "no memory");
}

static bool add_transfer(loader *l, const block *b, const transfer *t) {
  int pieces = l->single ? t->count : 1, each = l->single ? 1 : t->count, reductions = t->reductions;
  size_t first = l->step.len;
  for (int c = 0; c < pieces; c++) {
    for (int k = 0; k < (reductions > 0 ? reductions : 1); k++) {
      int from = reductions > 0 ? l->source.data[t->reduction + k] : t->src;
      if (!add_step(l, b, t, from, c, each)) {
        return false;
      }
    }
  }
  polyccl_wait found = {0, 0};
  for (int w = t->wait; w < t->wait + t->waits; w++) {
    if (!awaited_step(l, l->wait.data[w], &found) || !pccl_vec_push(&l->plan_wait, found)) {
      return false;
    }
  }
  l->step.data[first].waits = t->waits;
  for (size_t i = first + 1; i < l->step.len; i++) {
    l->step.data[i].wait = (int32_t)l->plan_wait.len;
  }
  return true;
}

bool msccl_add_rank(loader *l) {
  polyccl_plan_rank rank = {.scratch = l->scratch, .tb = (int32_t)l->tb.len, .tbs = l->blocks};
  for (int b = 0; b < l->blocks; b++) {
    number_transfers(l, &l->block[b]);
  }
  for (int b = 0; b < l->blocks; b++) {
    polyccl_thread_block tb = {.rank = l->rank, .step = (int32_t)l->step.len};
    if (!pccl_vec_push(&l->tb, tb)) {
      return refuse(l, "no memory");
    }
    for (int i = l->block[b].transfer; i < l->block[b].transfer + l->block[b].transfers; i++) {
      if (!add_transfer(l, &l->block[b], &l->transfer.data[i])) {
        return false;
      }
    }
  }
  return pccl_vec_push(&l->plan_rank, rank) || refuse(l, "no memory");
}

static bool copy_meaning(const polyccl_plan *meant, polyccl_plan *plan) {
  plan->root = meant->root;
  plan->peer = meant->peer;
  plan->post = calloc(meant->posts + 1, sizeof *plan->post);
  plan->leaf = calloc(meant->leaves + 1, sizeof *plan->leaf);
  plan->absent = calloc(meant->absents + 1, sizeof *plan->absent);
  if (plan->post == NULL || plan->leaf == NULL || plan->absent == NULL) {
    return false;
  }
  plan->posts = meant->posts;
  plan->leaves = meant->leaves;
  plan->absents = meant->absents;
  for (size_t i = 0; i < meant->posts; i++) {
    plan->post[i] = meant->post[i];
  }
  for (size_t i = 0; i < meant->leaves; i++) {
    plan->leaf[i] = meant->leaf[i];
  }
  for (size_t i = 0; i < meant->absents; i++) {
    plan->absent[i] = meant->absent[i];
  }
  return true;
}

polyccl_plan *msccl_make_plan(loader *l, const polyccl_plan *meant) {
  polyccl_plan *made;
  if (polyccl_plan_create(l->ranks, &made) != POLYCCL_SUCCESS) {
    return NULL;
  }
  free(made->rank);
  polyccl_plan_rank *rank = l->plan_rank.data;
  int32_t ranks = made->ranks;
  *made = l->head;
  made->ranks = ranks;
  made->rank = rank;
  made->tb = l->tb.data;
  made->tbs = l->tb.len;
  made->step = l->step.data;
  made->steps = l->step.len;
  made->wait = l->plan_wait.data;
  made->waits = l->plan_wait.len;
  made->connection = l->connection.data;
  made->connections = l->connection.len;
  made->fifo_depth = l->runtime->depth[made->protocol];
  l->plan_rank.data = NULL;
  l->tb.data = NULL;
  l->step.data = NULL;
  l->plan_wait.data = NULL;
  l->connection.data = NULL;
  if (!copy_meaning(meant, made)) {
    polyccl_plan_destroy(made);
    return NULL;
  }
  return made;
}
