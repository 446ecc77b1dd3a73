#include "compiler/rename.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/map.h"

pccl_collective_spec pccl_rename_spec(const pccl_refiner *r) {
  pccl_collective_spec spec = r->ir->spec;
  spec.inplace = r->program->config.inplace;
  return spec;
}

int32_t pccl_rename_cell(const pccl_refiner *r, pccl_spot at) {
  pccl_collective_spec spec = pccl_rename_spec(r);
  return pccl_collective_cell(&spec, at.rank, at.buffer == POLYCCL_BUF_OUTPUT, at.offset);
}

/* The output chunk of a cell, or -1. */
static int32_t output_of_cell(const pccl_refiner *r, int rank, int32_t cell) {
  pccl_collective_spec spec = pccl_rename_spec(r);
  int input, output;
  pccl_collective_shape(&spec, &input, &output);
  int32_t first = pccl_collective_cell(&spec, rank, true, 0);
  return cell >= first && cell < first + output ? cell - first : -1;
}

bool pccl_rename_is_wanted(const pccl_refiner *r, int rank, int32_t output) {
  polyccl_leaf leaf;
  return r->program->config.collective == POLYCCL_CUSTOM ||
         pccl_collective_post(&r->ir->spec, rank, output, &leaf) != PCCL_POST_ANY;
}

static pccl_spot renamed_home(const pccl_refiner *r, int rank, int32_t cell) {
  int32_t output = output_of_cell(r, rank, cell);
  if (output >= 0 && pccl_rename_is_wanted(r, rank, output)) {
    return (pccl_spot){rank, output, POLYCCL_BUF_OUTPUT};
  }
  return (pccl_spot){rank, r->spill[rank] + cell, POLYCCL_BUF_SCRATCH};
}

pccl_spot pccl_rename_read(const pccl_refiner *r, pccl_spot at) {
  if (at.buffer == POLYCCL_BUF_SCRATCH) {
    return at;
  }
  int32_t cell = pccl_rename_cell(r, at);
  if (r->touched[at.rank][cell]) {
    return renamed_home(r, at.rank, cell);
  }
  pccl_collective_spec spec = pccl_rename_spec(r);
  return (pccl_spot){at.rank, cell - pccl_collective_cell(&spec, at.rank, false, 0), POLYCCL_BUF_INPUT};
}

pccl_spot pccl_rename_write(const pccl_refiner *r, pccl_spot at) {
  return at.buffer == POLYCCL_BUF_SCRATCH ? at : renamed_home(r, at.rank, pccl_rename_cell(r, at));
}

bool pccl_rename_is_needed(const pccl_refiner *r) {
  if (r->program->config.inplace) {
    return true;
  }
  for (size_t i = 0; i < r->program->operations.len; i++) {
    const pccl_operation *op = &r->program->operations.data[i];
    if (op->dst.buffer == POLYCCL_INPUT) {
      return true;
    }
    for (int32_t k = 0; op->dst.buffer == POLYCCL_OUTPUT && k < op->size; k++) {
      polyccl_leaf leaf;
      if (r->program->config.collective != POLYCCL_CUSTOM &&
          pccl_collective_post(&r->program->spec, op->dst.rank, op->dst.index + k, &leaf) == PCCL_POST_ANY) {
        return true;
      }
    }
  }
  return false;
}

polyccl_result pccl_rename_pack(pccl_refiner *r) {
  size_t ranks = (size_t)r->program->config.ranks;
  pccl_map *used = pccl_zeroed(ranks, sizeof *used);
  bool ok = used != NULL;
  for (size_t i = 0; ok && i < r->ir->moves.len; i++) {
    pccl_ir_move *m = &r->ir->moves.data[i];
    for (int32_t k = 0; ok && m->dst_buf == POLYCCL_BUF_SCRATCH && k < m->count; k++) {
      if (m->dst + k >= r->spill[m->dst_rank]) {
        ok = pccl_map_put(&used[m->dst_rank], (uint64_t)(m->dst + k), 1, NULL) != NULL;
      }
    }
  }
  pccl_collective_spec spec = pccl_rename_spec(r);
  int32_t cells = pccl_collective_cells(&spec);
  for (size_t rank = 0; ok && rank < ranks; rank++) {
    int32_t next = r->spill[rank];
    for (int32_t cell = 0; cell < cells && used[rank].used > 0; cell++) {
      uint64_t *slot = pccl_map_get(&used[rank], (uint64_t)(r->spill[rank] + cell));
      if (slot != NULL) {
        *slot = (uint64_t)next++;
      }
    }
    r->ir->scratch[rank] = next;
  }
  /* Runs stay runs, since packing keeps the order and every chunk of a run is in use. */
  for (size_t i = 0; ok && i < r->ir->moves.len; i++) {
    pccl_ir_move *m = &r->ir->moves.data[i];
    if (m->dst_buf == POLYCCL_BUF_SCRATCH && m->dst >= r->spill[m->dst_rank]) {
      m->dst = (int32_t)*pccl_map_get(&used[m->dst_rank], (uint64_t)m->dst);
    }
    if (m->src_buf == POLYCCL_BUF_SCRATCH && m->src >= r->spill[m->src_rank]) {
      m->src = (int32_t)*pccl_map_get(&used[m->src_rank], (uint64_t)m->src);
    }
    if (m->kind == PCCL_REDUCE && m->acc_buf == POLYCCL_BUF_SCRATCH && m->acc >= r->spill[m->dst_rank]) {
      m->acc = (int32_t)*pccl_map_get(&used[m->dst_rank], (uint64_t)m->acc);
    }
  }
  for (size_t rank = 0; used != NULL && rank < ranks; rank++) {
    pccl_map_free(&used[rank]);
  }
  free(used);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("the compiler");
}
