#include "compiler/ir.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"

pccl_ir pccl_ir_of(const polyccl_program *program, const polyccl_compile_options *options, int32_t instances) {
  static const polyccl_compile_options defaults = {.size = sizeof(polyccl_compile_options)};
  int32_t asked = program->config.instances, used = instances > 0 ? instances : asked;
  return (pccl_ir){.program = program,
                   .options = options != NULL ? options : &defaults,
                   .program_instances = used,
                   .refine = program->refine / asked * used,
                   .spec = program->spec};
}

double pccl_seconds_since(double *since) {
  double now = pccl_now_seconds(), passed = now - *since;
  *since = now;
  return passed;
}

void pccl_ir_free(pccl_ir *ir) {
  free(ir->scratch);
  free(ir->first_slot);
  free(ir->into);
  free(ir->apart);
  free(ir->hinted);
  free(ir->tbs);
  pccl_vec_free(&ir->moves);
  pccl_vec_free(&ir->nodes);
  pccl_vec_free(&ir->preds);
  pccl_vec_free(&ir->order);
  pccl_vec_free(&ir->waits);
}

size_t pccl_ir_slot(const pccl_ir *ir, int rank, uint8_t buffer, int32_t offset) {
  if (buffer == POLYCCL_BUF_SCRATCH) {
    return ir->first_slot[rank] + (size_t)pccl_collective_cells(&ir->spec) + (size_t)offset;
  }
  return ir->first_slot[rank] + (size_t)pccl_collective_cell(&ir->spec, rank, buffer == POLYCCL_BUF_OUTPUT, offset);
}

/* Interleaved replication keeps the parts of a chunk together; batched gives each instance a run of the buffer. */
int32_t pccl_ir_chunk_of_part(const pccl_ir *ir, int32_t chunks, int32_t i) {
  bool batched = ir->program->config.replication == POLYCCL_BATCHED;
  return batched ? i / (ir->refine / ir->program_instances) % chunks : i / ir->refine;
}

int32_t pccl_ir_part_of_chunk(const pccl_ir *ir, int32_t chunks, int32_t chunk, int32_t part) {
  int32_t per = ir->refine / ir->program_instances;
  bool batched = ir->program->config.replication == POLYCCL_BATCHED;
  return batched ? (part / per * chunks + chunk) * per + part % per : chunk * ir->refine + part;
}

polyccl_location pccl_ir_location(const pccl_ir *ir, const pccl_node *node) {
  return pccl_program_location(ir->program, node->location);
}

static void dump_node(const pccl_ir *ir, size_t i, FILE *to) {
  const pccl_node *node = &ir->nodes.data[i];
  const pccl_op_traits *traits = &pccl_ops[node->op];
  static const char letters[] = "ios";
  fprintf(to, "%zu: rank %d %s", i, node->rank, traits->name);
  if (traits->reads_src) {
    fprintf(to, " %c%d", letters[node->src_buf], node->src);
  }
  if (traits->writes_dst) {
    fprintf(to, " %c%d", letters[node->dst_buf], node->dst);
  }
  fprintf(to, " x%d", node->count);
  if (node->from >= 0) {
    fprintf(to, " from %d(rank %d)", node->from, ir->nodes.data[node->from].rank);
  }
  if (node->to >= 0) {
    fprintf(to, " to %d(rank %d)", node->to, ir->nodes.data[node->to].rank);
  }
  for (int32_t k = 0; k < node->preds; k++) {
    fprintf(to, "%s%d", k == 0 ? " after " : ",", ir->preds.data[node->pred + k]);
  }
  if (ir->loop == POLYCCL_TASK_MAJOR) {
    fprintf(to, " pipeline %d", node->pipeline);
  }
  fprintf(to, " instance %d depth %d priority %d", node->instance, node->depth, node->priority);
  if (node->channel >= 0) {
    fprintf(to, " ch %d", node->channel);
  }
  if (node->tb >= 0) {
    fprintf(to, " tb %d", node->tb);
  }
  polyccl_location at = pccl_ir_location(ir, node);
  fprintf(to, " at %s:%d\n", at.file != NULL ? at.file : "?", at.line);
}

void pccl_ir_dump(const pccl_ir *ir, FILE *to) {
  static const char letters[] = "ios";
  if (ir->nodes.len == 0) {
    for (size_t i = 0; i < ir->moves.len; i++) {
      const pccl_ir_move *m = &ir->moves.data[i];
      polyccl_location at = pccl_program_location(ir->program, m->location);
      fprintf(to, "%zu: %s %d.%c%d -> %d.%c%d x%d instance %d at %s:%d\n", i, m->kind == PCCL_COPY ? "copy" : "reduce",
              m->src_rank, letters[m->src_buf], m->src, m->dst_rank, letters[m->dst_buf], m->dst, m->count, m->instance,
              at.file != NULL ? at.file : "?", at.line);
    }
  } else if (ir->order.len > 0) {
    for (size_t i = 0; i < ir->order.len; i++) {
      dump_node(ir, (size_t)ir->order.data[i], to);
    }
  } else {
    for (size_t i = 0; i < ir->nodes.len; i++) {
      if (!ir->nodes.data[i].gone) {
        dump_node(ir, i, to);
      }
    }
  }
}

static const char *broken_node(const pccl_ir *ir, size_t i) {
  const pccl_node *node = &ir->nodes.data[i];
  const pccl_op_traits *traits = &pccl_ops[node->op];
  if (traits->receives != (node->from >= 0) || traits->sends != (node->to >= 0)) {
    return "its mates do not fit its op";
  }
  if (node->from >= 0) {
    const pccl_node *from = &ir->nodes.data[node->from];
    if (from->gone || from->to != (int32_t)i || from->count != node->count || from->rank == node->rank) {
      return "its sender does not send to it";
    }
  }
  if (node->to >= 0) {
    const pccl_node *to = &ir->nodes.data[node->to];
    if (to->gone || to->from != (int32_t)i || to->channel != node->channel) {
      return "its receiver does not receive from it";
    }
  }
  for (int32_t k = 0; k < node->preds; k++) {
    const pccl_node *pred = &ir->nodes.data[ir->preds.data[node->pred + k]];
    if (pred->gone || pred->rank != node->rank) {
      return "it depends on a node that is gone or elsewhere";
    }
  }
  return NULL;
}

polyccl_result pccl_ir_check(const pccl_ir *ir, const char *pass) {
  for (size_t i = 0; i < ir->nodes.len; i++) {
    const char *what = ir->nodes.data[i].gone ? NULL : broken_node(ir, i);
    if (what != NULL) {
      return pccl_fail_at(POLYCCL_ERROR_INTERNAL, pccl_ir_location(ir, &ir->nodes.data[i]),
                          "after pass %s, node %zu: %s", pass, i, what);
    }
  }
  return POLYCCL_SUCCESS;
}

/* The order in which nodes are made is topological: a send is made just before its receive, and what depends on a node
 * is made after it. A fused node keeps the number of its receive, and what its send fed was made later. */
void pccl_ir_depths(pccl_ir *ir) {
  pccl_node *nodes = ir->nodes.data;
  for (size_t i = 0; i < ir->nodes.len; i++) {
    pccl_node *node = &nodes[i];
    if (node->gone) {
      continue;
    }
    int32_t depth = node->from >= 0 ? nodes[node->from].depth + 1 : 0;
    for (int32_t k = 0; k < node->preds; k++) {
      int32_t pred = ir->preds.data[node->pred + k];
      depth = nodes[pred].depth + 1 > depth ? nodes[pred].depth + 1 : depth;
    }
    node->depth = depth;
    node->priority = 0;
  }
  for (size_t i = ir->nodes.len; i-- > 0;) {
    pccl_node *node = &nodes[i];
    if (node->gone) {
      continue;
    }
    int32_t next = node->priority + 1;
    if (node->from >= 0 && nodes[node->from].priority < next) {
      nodes[node->from].priority = next;
    }
    for (int32_t k = 0; k < node->preds; k++) {
      pccl_node *pred = &nodes[ir->preds.data[node->pred + k]];
      pred->priority = pred->priority > next ? pred->priority : next;
    }
  }
}
