/* emit: the plan's arrays. Connections are numbered by (source, destination, channel). Channels are renumbered without
 * gaps, except where the author chose some. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/ir.h"

typedef struct emitter {
  const pccl_ir *ir;
  polyccl_plan *plan;
  int32_t *dense;      /* channel -> final channel */
  int32_t *connection; /* [nodes] that receive: their connection */
} emitter;

static polyccl_result number_channels(emitter *e) {
  const pccl_ir *ir = e->ir;
  int32_t top = 0;
  bool hints = false;
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    top = !node->gone && node->channel > top ? node->channel : top;
    hints = hints || (ir->hinted != NULL && ir->hinted[i]);
  }
  e->dense = pccl_zeroed((size_t)top + 1, sizeof *e->dense);
  if (e->dense == NULL) {
    return pccl_no_memory("a plan");
  }
  for (size_t i = 0; i < ir->nodes.len; i++) {
    if (!ir->nodes.data[i].gone && ir->nodes.data[i].channel >= 0) {
      e->dense[ir->nodes.data[i].channel] = 1;
    }
  }
  int32_t next = 0;
  for (int32_t c = 0; c <= top; c++) {
    e->dense[c] = hints ? c : e->dense[c] ? next++ : 0;
  }
  return POLYCCL_SUCCESS;
}

typedef struct end_pair {
  polyccl_connection connection;
  int32_t node;
} end_pair;

static int compare_pairs(const void *a, const void *b) {
  const end_pair *x = a, *y = b;
  if (x->connection.src != y->connection.src) {
    return x->connection.src < y->connection.src ? -1 : 1;
  }
  if (x->connection.dst != y->connection.dst) {
    return x->connection.dst < y->connection.dst ? -1 : 1;
  }
  return (x->connection.channel > y->connection.channel) - (x->connection.channel < y->connection.channel);
}

static polyccl_result make_connections(emitter *e) {
  const pccl_ir *ir = e->ir;
  PCCL_VEC(end_pair) pairs = {0};
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const pccl_node *node = &ir->nodes.data[i];
    if (node->gone || node->from < 0) {
      continue;
    }
    end_pair pair = {{ir->nodes.data[node->from].rank, node->rank, e->dense[node->channel]}, (int32_t)i};
    if (!pccl_vec_push(&pairs, pair)) {
      pccl_vec_free(&pairs);
      return pccl_no_memory("a plan");
    }
  }
  if (pairs.len > 0) {
    qsort(pairs.data, pairs.len, sizeof *pairs.data, compare_pairs);
  }
  e->connection = pccl_array(ir->nodes.len, sizeof *e->connection);
  e->plan->connection = pccl_array(pairs.len, sizeof *e->plan->connection);
  bool ok = e->connection != NULL && e->plan->connection != NULL;
  for (size_t i = 0; ok && i < pairs.len; i++) {
    if (i == 0 || compare_pairs(&pairs.data[i - 1], &pairs.data[i]) != 0) {
      e->plan->connection[e->plan->connections++] = pairs.data[i].connection;
    }
    e->connection[pairs.data[i].node] = (int32_t)e->plan->connections - 1;
  }
  pccl_vec_free(&pairs);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("a plan");
}

static polyccl_step make_step(const emitter *e, int32_t number) {
  const pccl_node *node = &e->ir->nodes.data[number];
  const pccl_op_traits *traits = &pccl_ops[node->op];
  polyccl_step step = {.op = node->op,
                       .count = node->count,
                       .recv = -1,
                       .send = -1,
                       .wait = node->wait,
                       .waits = node->waits,
                       .location = node->location};
  if (traits->reads_src) {
    step.src = node->src;
    step.src_buf = node->src_buf;
  }
  if (traits->writes_dst) {
    step.dst = node->dst;
    step.dst_buf = node->dst_buf;
  }
  if (node->from >= 0) {
    step.recv = e->connection[number];
  }
  if (node->to >= 0) {
    step.send = e->connection[node->to];
  }
  return step;
}

static polyccl_result make_steps(emitter *e) {
  const pccl_ir *ir = e->ir;
  polyccl_plan *plan = e->plan;
  for (int rank = 0; rank < plan->ranks; rank++) {
    plan->rank[rank].tb = (int32_t)plan->tbs;
    plan->rank[rank].tbs = ir->tbs[rank];
    plan->tbs += (size_t)ir->tbs[rank];
  }
  plan->tb = pccl_zeroed(plan->tbs, sizeof *plan->tb);
  plan->step = pccl_array(ir->order.len, sizeof *plan->step);
  plan->wait = pccl_array(ir->waits.len, sizeof *plan->wait);
  if (plan->tb == NULL || plan->step == NULL || plan->wait == NULL) {
    return pccl_no_memory("a plan");
  }
  if (ir->waits.len > 0) {
    memcpy(plan->wait, ir->waits.data, ir->waits.len * sizeof *plan->wait);
  }
  plan->waits = ir->waits.len;
  plan->steps = ir->order.len;
  for (size_t i = 0; i < ir->order.len; i++) {
    const pccl_node *node = &ir->nodes.data[ir->order.data[i]];
    plan->tb[plan->rank[node->rank].tb + node->tb].steps++;
  }
  int32_t next = 0;
  for (int rank = 0; rank < plan->ranks; rank++) {
    for (int32_t t = plan->rank[rank].tb; t < plan->rank[rank].tb + plan->rank[rank].tbs; t++) {
      plan->tb[t].rank = rank;
      plan->tb[t].step = next;
      next += plan->tb[t].steps;
    }
  }
  for (size_t i = 0; i < ir->order.len; i++) {
    int32_t number = ir->order.data[i];
    const pccl_node *node = &ir->nodes.data[number];
    plan->step[plan->tb[plan->rank[node->rank].tb + node->tb].step + node->step] = make_step(e, number);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result copy_lines(const polyccl_program *program, polyccl_plan *plan) {
  plan->file = pccl_zeroed(program->files.len, sizeof *plan->file);
  plan->location = pccl_array(program->locations.len, sizeof *plan->location);
  if (plan->file == NULL || plan->location == NULL) {
    return pccl_no_memory("a plan");
  }
  for (; plan->files < program->files.len; plan->files++) {
    plan->file[plan->files] = pccl_strdup(program->files.data[plan->files]);
    if (plan->file[plan->files] == NULL) {
      return pccl_no_memory("a plan");
    }
  }
  for (; plan->locations < program->locations.len; plan->locations++) {
    pccl_line line = program->locations.data[plan->locations];
    plan->location[plan->locations].file = line.file;
    plan->location[plan->locations].line = line.line;
  }
  return POLYCCL_SUCCESS;
}

/* Copies the pre- and postconditions: a declared chunk of the program is `refine` chunks of the plan. */
static polyccl_result copy_conditions(const pccl_ir *ir, polyccl_plan *plan) {
  const polyccl_program *program = ir->program;
  if (program->config.collective != POLYCCL_CUSTOM) {
    return POLYCCL_SUCCESS;
  }
  size_t refine = (size_t)ir->refine;
  plan->post = pccl_array(program->post_lists.len * refine, sizeof *plan->post);
  plan->leaf = pccl_array(program->post_leaves.len * refine, sizeof *plan->leaf);
  plan->absent = pccl_array(program->absent.used * refine, sizeof *plan->absent);
  if (plan->post == NULL || plan->leaf == NULL || plan->absent == NULL) {
    return pccl_no_memory("a plan");
  }
  for (int rank = 0; rank < program->config.ranks; rank++) {
    for (int chunk = 0; chunk < program->output; chunk++) {
      uint64_t *found = pccl_map_get(&program->posts, (uint64_t)rank * (uint64_t)program->output + (uint64_t)chunk);
      for (int32_t part = 0; found != NULL && part < ir->refine; part++) {
        pccl_post_list list = program->post_lists.data[*found];
        plan->post[plan->posts++] = (polyccl_post){rank, pccl_ir_part_of_chunk(ir, program->output, chunk, part),
                                                   (int32_t)plan->leaves, list.leaves};
        for (int32_t k = 0; k < list.leaves; k++) {
          polyccl_leaf leaf = program->post_leaves.data[list.leaf + k];
          leaf.chunk = pccl_ir_part_of_chunk(ir, program->input, leaf.chunk, part);
          plan->leaf[plan->leaves++] = leaf;
        }
      }
    }
    for (int chunk = 0; chunk < program->input && program->absent.used > 0; chunk++) {
      for (int32_t part = 0; part < ir->refine && !pccl_program_held(program, rank, chunk); part++) {
        plan->absent[plan->absents++] = (polyccl_leaf){rank, pccl_ir_part_of_chunk(ir, program->input, chunk, part)};
      }
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result fill_plan(emitter *e) {
  const polyccl_program_config *config = &e->ir->program->config;
  polyccl_plan *plan = e->plan;
  plan->name = pccl_strdup(e->ir->program->name);
  if (plan->name == NULL) {
    return pccl_no_memory("a plan");
  }
  plan->collective = config->collective;
  plan->chunks = e->ir->spec.chunks;
  plan->chunks_out = e->ir->spec.chunks_out > 0 ? e->ir->spec.chunks_out : e->ir->spec.chunks;
  plan->inplace = e->ir->spec.inplace;
  plan->root = config->root;
  plan->peer = config->peer;
  plan->protocol = config->protocol;
  plan->order = e->ir->loop;
  plan->min_bytes = config->min_bytes;
  plan->max_bytes = config->max_bytes;
  for (int rank = 0; rank < plan->ranks; rank++) {
    polyccl_plan_shape(plan, rank, &plan->rank[rank].input, &plan->rank[rank].output);
    plan->rank[rank].scratch = e->ir->scratch[rank];
  }
  PCCL_TRY(number_channels(e));
  PCCL_TRY(make_connections(e));
  PCCL_TRY(make_steps(e));
  PCCL_TRY(copy_lines(e->ir->program, plan));
  return copy_conditions(e->ir, plan);
}

polyccl_result pccl_pass_emit(const pccl_ir *ir, polyccl_plan **plan) {
  emitter e = {.ir = ir};
  PCCL_TRY(polyccl_plan_create(ir->spec.ranks, &e.plan));
  polyccl_result result = fill_plan(&e);
  free(e.dense);
  free(e.connection);
  if (result != POLYCCL_SUCCESS) {
    polyccl_plan_destroy(e.plan);
    return result;
  }
  *plan = e.plan;
  return POLYCCL_SUCCESS;
}
