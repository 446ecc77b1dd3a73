/* lower: a move between ranks becomes a send and a receive (a remote reduction: an rrc); a local move becomes a copy or
 * a reduction. The last writer of each slot and its readers since then give the RAW, WAR and WAW edges. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/ir.h"

typedef struct reader {
  int32_t node, next;
} reader;

typedef struct tracker {
  pccl_ir *ir;
  int32_t *writer;  /* [slots] last node that wrote it, -1: none */
  int32_t *readers; /* [slots] first in pool since that write, -1: none */
  PCCL_VEC(reader) pool;
  int32_t free_reader;
  int32_t *mark; /* [nodes so far] the last node that took it as predecessor; grown with the nodes */
  size_t marks;
} tracker;

static bool add_pred(tracker *t, pccl_node *node, int32_t self, int32_t pred) {
  if (pred < 0 || pred == self || t->mark[pred] == self) {
    return true;
  }
  t->mark[pred] = self;
  node->preds++;
  return pccl_vec_push(&t->ir->preds, pred);
}

static bool record_read(tracker *t, pccl_node *node, int32_t self, size_t slot) {
  int32_t writer = t->writer[slot];
  if (writer >= 0) {
    t->ir->nodes.data[writer].reads++;
  }
  int32_t entry = t->free_reader;
  if (entry >= 0) {
    t->free_reader = t->pool.data[entry].next;
  } else {
    if (t->pool.len >= INT32_MAX || !pccl_vec_push(&t->pool, (reader){0, 0})) {
      return false;
    }
    entry = (int32_t)t->pool.len - 1;
  }
  t->pool.data[entry] = (reader){self, t->readers[slot]};
  t->readers[slot] = entry;
  return add_pred(t, node, self, writer);
}

static bool record_write(tracker *t, pccl_node *node, int32_t self, size_t slot) {
  int32_t writer = t->writer[slot], entry = t->readers[slot];
  bool ok = true;
  if (entry < 0) {
    ok = add_pred(t, node, self, writer);
  }
  /* Readers come after the writer, so edges to them imply the edge to it. */
  while (ok && entry >= 0) {
    int32_t next = t->pool.data[entry].next;
    ok = add_pred(t, node, self, t->pool.data[entry].node);
    t->pool.data[entry].next = t->free_reader;
    t->free_reader = entry;
    entry = next;
  }
  if (writer >= 0) {
    t->ir->nodes.data[writer].kills++;
  }
  t->readers[slot] = -1;
  t->writer[slot] = self;
  return ok;
}

/* The input of a plan that is in either place is read before the output that may share its memory is written. */
static bool record_shared_read(tracker *t, pccl_node *node, int32_t self) {
  const pccl_ir *ir = t->ir;
  if (ir->options->placement != POLYCCL_EITHER_PLACE || !ir->program->config.inplace ||
      node->src_buf != POLYCCL_BUF_INPUT) {
    return true;
  }
  pccl_collective_spec shared = ir->spec;
  shared.inplace = true;
  int input, output;
  pccl_collective_shape(&shared, &input, &output);
  int32_t first =
      pccl_collective_cell(&shared, node->rank, false, node->src) - pccl_collective_cell(&shared, node->rank, true, 0);
  bool ok = true;
  for (int32_t i = 0; ok && i < node->count; i++) {
    ok = first + i < 0 || first + i >= output ||
         record_read(t, node, self, pccl_ir_slot(ir, node->rank, POLYCCL_BUF_OUTPUT, first + i));
  }
  return ok;
}

/* Adds a node with its edges. Its reads come before its writes, so that reading what it overwrites counts as a read. */
static bool add_node(tracker *t, pccl_node node, int32_t *number) {
  pccl_ir *ir = t->ir;
  int32_t self = (int32_t)ir->nodes.len;
  if (ir->nodes.len >= INT32_MAX - 1) {
    return false;
  }
  if ((size_t)self >= t->marks) {
    size_t marks = t->marks * 2 + 1024;
    int32_t *grown = pccl_resized(t->mark, marks, sizeof *grown);
    if (grown == NULL) {
      return false;
    }
    memset(grown + t->marks, 0xff, (marks - t->marks) * sizeof *grown);
    t->mark = grown;
    t->marks = marks;
  }
  const pccl_op_traits *traits = &pccl_ops[node.op];
  node.pred = (int32_t)ir->preds.len;
  node.preds = 0;
  bool ok = true;
  if (traits->reads_src) {
    size_t slot = pccl_ir_slot(ir, node.rank, node.src_buf, node.src);
    for (int32_t i = 0; ok && i < node.count; i++) {
      ok = record_read(t, &node, self, slot + (size_t)i);
    }
    ok = ok && record_shared_read(t, &node, self);
  }
  if (traits->writes_dst) {
    size_t slot = pccl_ir_slot(ir, node.rank, node.dst_buf, node.dst);
    for (int32_t i = 0; ok && traits->reads_dst && i < node.count; i++) {
      ok = record_read(t, &node, self, slot + (size_t)i);
    }
    for (int32_t i = 0; ok && i < node.count; i++) {
      ok = record_write(t, &node, self, slot + (size_t)i);
    }
  }
  *number = self;
  return ok && ir->preds.len < INT32_MAX && pccl_vec_push(&ir->nodes, node);
}

static bool lower_remote(tracker *t, const pccl_ir_move *m) {
  pccl_node base = {.count = m->count,
                    .from = -1,
                    .to = -1,
                    .instance = m->instance,
                    .location = m->location,
                    .channel = m->channel,
                    .tb = -1};
  pccl_node send = base, receive = base;
  send.rank = m->src_rank;
  send.op = POLYCCL_STEP_SEND;
  send.src = m->src;
  send.src_buf = m->src_buf;
  send.tb = m->send_tb;
  receive.rank = m->dst_rank;
  receive.op = m->kind == PCCL_COPY ? POLYCCL_STEP_RECV : POLYCCL_STEP_RRC;
  receive.dst = m->dst;
  receive.dst_buf = m->dst_buf;
  receive.tb = m->recv_tb;
  if (m->kind == PCCL_REDUCE) {
    receive.src = m->acc;
    receive.src_buf = m->acc_buf;
  }
  int32_t s, r;
  if (!add_node(t, send, &s) || !add_node(t, receive, &r)) {
    return false;
  }
  t->ir->nodes.data[s].to = r;
  t->ir->nodes.data[r].from = s;
  return true;
}

static polyccl_result lower_local(tracker *t, const pccl_ir_move *m) {
  size_t src = pccl_ir_slot(t->ir, m->src_rank, m->src_buf, m->src);
  size_t dst = pccl_ir_slot(t->ir, m->dst_rank, m->dst_buf, m->dst);
  if (m->kind == PCCL_COPY && src == dst) {
    return POLYCCL_SUCCESS; /* in place, the chunk is there already */
  }
  if (src < dst + (size_t)m->count && dst < src + (size_t)m->count) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_program_location(t->ir->program, m->location),
                        "compiled in place, this operation overlaps itself");
  }
  pccl_node node = {.rank = m->src_rank,
                    .src = m->src,
                    .dst = m->dst,
                    .count = m->count,
                    .from = -1,
                    .to = -1,
                    .instance = m->instance,
                    .location = m->location,
                    .channel = -1,
                    .src_buf = m->src_buf,
                    .dst_buf = m->dst_buf};
  node.tb = m->send_tb >= 0 ? m->send_tb : m->recv_tb;
  node.op = m->kind == PCCL_COPY ? POLYCCL_STEP_COPY : POLYCCL_STEP_REDUCE;
  int32_t number;
  return add_node(t, node, &number) ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
}

/* Chunks whose last value nobody needs count as overwritten, so that fusion need not write them. */
static void count_dead_ends(tracker *t) {
  pccl_ir *ir = t->ir;
  const polyccl_program *program = ir->program;
  int input, output;
  pccl_collective_shape(&ir->spec, &input, &output);
  for (int rank = 0; rank < ir->spec.ranks; rank++) {
    int32_t *writer = t->writer + ir->first_slot[rank];
    size_t slots = ir->first_slot[rank + 1] - ir->first_slot[rank];
    for (int32_t i = 0; i < output; i++) {
      polyccl_leaf leaf;
      bool needed =
          program->config.collective == POLYCCL_CUSTOM
              ? pccl_map_get(&program->posts, (uint64_t)rank * (uint64_t)program->output +
                                                  (uint64_t)pccl_ir_chunk_of_part(ir, program->output, i)) != NULL
              : pccl_collective_post(&ir->spec, rank, i, &leaf) != PCCL_POST_ANY;
      if (needed) {
        writer[pccl_collective_cell(&ir->spec, rank, true, i)] = -1;
      }
    }
    for (size_t i = 0; i < slots; i++) {
      if (writer[i] >= 0) {
        ir->nodes.data[writer[i]].kills++;
      }
    }
  }
}

static polyccl_result lower_all(tracker *t) {
  for (size_t i = 0; i < t->ir->moves.len; i++) {
    const pccl_ir_move *m = &t->ir->moves.data[i];
    if (m->src_rank == m->dst_rank) {
      PCCL_TRY(lower_local(t, m));
    } else if (!lower_remote(t, m)) {
      return pccl_no_memory("the compiler");
    }
  }
  count_dead_ends(t);
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_pass_lower(pccl_ir *ir) {
  size_t slots = ir->first_slot[ir->spec.ranks];
  tracker t = {.ir = ir,
               .writer = pccl_array(slots, sizeof *t.writer),
               .readers = pccl_array(slots, sizeof *t.readers),
               .free_reader = -1};
  polyccl_result result = POLYCCL_ERROR_MEMORY;
  if (t.writer != NULL && t.readers != NULL && pccl_vec_reserve(&ir->nodes, ir->moves.len * 2)) {
    memset(t.writer, 0xff, slots * sizeof *t.writer);
    memset(t.readers, 0xff, slots * sizeof *t.readers);
    result = lower_all(&t);
  } else {
    result = pccl_no_memory("the compiler");
  }
  free(t.writer);
  free(t.readers);
  free(t.mark);
  pccl_vec_free(&t.pool);
  return result;
}
