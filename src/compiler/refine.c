/* refine: cuts every operation into its instances and places it in the buffers of the plan.
 *
 * Every chunk of the program becomes `refine` chunks of the plan. An operation moves all parts of its chunks, so the
 * result is right for any mix of counts and scopes; dependencies are found later on the parts.
 *   interleaved: chunk k is parts k * refine ..; instance i takes the i-th run of the operation's parts
 *   batched:     instance i owns the i-th run of every block (of scratch: of the buffer)
 * Out of place, the caller's input is only read, and an output that the collective does not ask for may not be there.
 * So a program that writes elsewhere (an in-place program always does) is renamed: a chunk that nothing has written is
 * read from the input; once written, it lives in the output where the collective asks for it, else in scratch. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/ir.h"

typedef struct refiner {
  pccl_ir *ir;
  const polyccl_program *program;
  int32_t refine, instances;
  bool rename;           /* in-place program, out-of-place plan */
  int32_t *scratch_base; /* [scratch * ranks + rank] first plan chunk */
  uint8_t **touched;     /* rename: [rank][plan cell] written so far */
  int32_t *spill;        /* rename: [rank] first scratch chunk of renamed cells */
} refiner;

typedef struct spot {
  int32_t rank, offset;
  uint8_t buffer;
} spot;

/* Chunks of the program in the run that batched instances cut: a block, or a whole buffer. */
static int32_t run_of(const polyccl_program *program, pccl_place place) {
  if (place.buffer >= POLYCCL_SCRATCH) {
    return program->scratch.data[place.buffer - POLYCCL_SCRATCH].length[place.rank];
  }
  if (program->config.collective == POLYCCL_CUSTOM) {
    return place.buffer == POLYCCL_INPUT ? program->input : program->output;
  }
  return program->config.chunks;
}

/* The first plan chunk (within the program's buffer) of `index`'s parts from `part` on, in `instance`. */
static int32_t batched_offset(const refiner *r, pccl_place place, int32_t instance) {
  int32_t run = run_of(r->program, place), parts = r->refine / r->instances;
  int32_t block = place.index / run, within = place.index % run;
  return block * run * r->refine + (instance * run + within) * parts;
}

static spot spot_of(const refiner *r, pccl_place place, int32_t offset) {
  if (place.buffer < POLYCCL_SCRATCH) {
    return (spot){place.rank, offset,
                  (uint8_t)(place.buffer == POLYCCL_INPUT ? POLYCCL_BUF_INPUT : POLYCCL_BUF_OUTPUT)};
  }
  size_t which = (size_t)(place.buffer - POLYCCL_SCRATCH) * (size_t)r->program->config.ranks + (size_t)place.rank;
  return (spot){place.rank, r->scratch_base[which] + offset, POLYCCL_BUF_SCRATCH};
}

/* ---- renaming ---- */

/* The plan's chunks under the program's own sharing of input and output. */
static pccl_collective_spec written_spec(const refiner *r) {
  pccl_collective_spec spec = r->ir->spec;
  spec.inplace = r->program->config.inplace;
  return spec;
}

static int32_t cell_of(const refiner *r, spot at) {
  pccl_collective_spec spec = written_spec(r);
  return pccl_collective_cell(&spec, at.rank, at.buffer == POLYCCL_BUF_OUTPUT, at.offset);
}

/* The output chunk of a cell, or -1. */
static int32_t output_of_cell(const refiner *r, int rank, int32_t cell) {
  pccl_collective_spec spec = written_spec(r);
  int input, output;
  pccl_collective_shape(&spec, &input, &output);
  int32_t first = pccl_collective_cell(&spec, rank, true, 0);
  return cell >= first && cell < first + output ? cell - first : -1;
}

static bool wanted(const refiner *r, int rank, int32_t output) {
  polyccl_leaf leaf;
  return r->program->config.collective == POLYCCL_CUSTOM ||
         pccl_collective_post(&r->ir->spec, rank, output, &leaf) != PCCL_POST_ANY;
}

static spot renamed_home(const refiner *r, int rank, int32_t cell) {
  int32_t output = output_of_cell(r, rank, cell);
  if (output >= 0 && wanted(r, rank, output)) {
    return (spot){rank, output, POLYCCL_BUF_OUTPUT};
  }
  return (spot){rank, r->spill[rank] + cell, POLYCCL_BUF_SCRATCH};
}

static spot renamed_read(const refiner *r, spot at) {
  if (at.buffer == POLYCCL_BUF_SCRATCH) {
    return at;
  }
  int32_t cell = cell_of(r, at);
  if (r->touched[at.rank][cell]) {
    return renamed_home(r, at.rank, cell);
  }
  pccl_collective_spec spec = written_spec(r);
  return (spot){at.rank, cell - pccl_collective_cell(&spec, at.rank, false, 0), POLYCCL_BUF_INPUT};
}

static spot renamed_write(const refiner *r, spot at) {
  return at.buffer == POLYCCL_BUF_SCRATCH ? at : renamed_home(r, at.rank, cell_of(r, at));
}

static bool follows(spot a, spot b, int32_t distance) {
  return a.rank == b.rank && a.buffer == b.buffer && b.offset == a.offset + distance;
}

/* ---- moves ---- */

static bool push_move(refiner *r, pccl_ir_move move, spot src, spot dst, spot acc, int32_t count) {
  move.src_rank = src.rank;
  move.src = src.offset;
  move.src_buf = src.buffer;
  move.dst_rank = dst.rank;
  move.dst = dst.offset;
  move.dst_buf = dst.buffer;
  move.acc = acc.offset;
  move.acc_buf = acc.buffer;
  move.count = count;
  if (move.kind == PCCL_REDUCE && src.rank == dst.rank && (acc.buffer != dst.buffer || acc.offset != dst.offset)) {
    /* A local reduction is dst += src: bring its first operand to dst before. */
    pccl_ir_move bring = move;
    bring.kind = PCCL_COPY;
    bring.src = acc.offset;
    bring.src_buf = acc.buffer;
    move.acc = dst.offset;
    move.acc_buf = dst.buffer;
    return pccl_vec_push(&r->ir->moves, bring) && pccl_vec_push(&r->ir->moves, move);
  }
  return pccl_vec_push(&r->ir->moves, move);
}

static spot shifted(spot at, int32_t by) {
  at.offset += by;
  return at;
}

static bool add_move(refiner *r, pccl_ir_move move, spot src, spot dst, int32_t count) {
  if (!r->rename) {
    return push_move(r, move, src, dst, dst, count);
  }
  /* Maximal runs in which source, destination and local operand each stay contiguous. */
  for (int32_t at = 0; at < count;) {
    spot from = renamed_read(r, shifted(src, at)), to = renamed_write(r, shifted(dst, at));
    spot acc = move.kind == PCCL_REDUCE ? renamed_read(r, shifted(dst, at)) : to;
    int32_t end = at + 1;
    while (end < count && follows(from, renamed_read(r, shifted(src, end)), end - at) &&
           follows(to, renamed_write(r, shifted(dst, end)), end - at) &&
           (move.kind != PCCL_REDUCE || follows(acc, renamed_read(r, shifted(dst, end)), end - at))) {
      end++;
    }
    if (!push_move(r, move, from, to, acc, end - at)) {
      return false;
    }
    at = end;
  }
  for (int32_t at = 0; at < count && dst.buffer != POLYCCL_BUF_SCRATCH; at++) {
    r->touched[dst.rank][cell_of(r, shifted(dst, at))] = 1;
  }
  return true;
}

static int32_t lane_of_hint(int32_t hint, int32_t lanes, int32_t lane) { return hint < 0 ? -1 : hint * lanes + lane; }

/* The run of parts of one operation, from program chunk `skip` on for `size` chunks, in one instance and scope part. */
static bool cut(refiner *r, const pccl_operation *op, pccl_ir_move move, int32_t instance, int32_t part, int32_t skip,
                int32_t size) {
  pccl_place src = op->src, dst = op->dst;
  src.index += skip;
  dst.index += skip;
  int32_t per = r->refine / r->instances; /* parts of a chunk in one instance */
  if (r->program->config.replication == POLYCCL_BATCHED) {
    int32_t count = size * per / op->parallel;
    return add_move(r, move, shifted(spot_of(r, src, batched_offset(r, src, instance)), part * count),
                    shifted(spot_of(r, dst, batched_offset(r, dst, instance)), part * count), count);
  }
  int32_t count = size * per / op->parallel, shift = move.lane * count;
  return add_move(r, move, spot_of(r, src, src.index * r->refine + shift),
                  spot_of(r, dst, dst.index * r->refine + shift), count);
}

/* Batched runs end where a block of source or destination ends. */
static int32_t batched_run(const refiner *r, const pccl_operation *op, int32_t skip) {
  pccl_place src = op->src, dst = op->dst;
  int32_t size = op->size - skip;
  int32_t src_left = run_of(r->program, src) - (src.index + skip) % run_of(r->program, src);
  int32_t dst_left = run_of(r->program, dst) - (dst.index + skip) % run_of(r->program, dst);
  size = size < src_left ? size : src_left;
  return size < dst_left ? size : dst_left;
}

static polyccl_result refine_operation(refiner *r, const pccl_operation *op) {
  int32_t lanes = r->instances * op->parallel;
  for (int32_t lane = 0; lane < lanes; lane++) {
    pccl_ir_move move = {.kind = op->kind,
                         .lane = lane,
                         .location = op->location,
                         .channel = lane_of_hint(op->hints.channel, r->ir->lanes, lane),
                         .send_tb = lane_of_hint(op->hints.send_tb, r->ir->lanes, lane),
                         .recv_tb = lane_of_hint(op->hints.recv_tb, r->ir->lanes, lane)};
    for (int32_t skip = 0; skip < op->size;) {
      int32_t size = r->program->config.replication == POLYCCL_BATCHED ? batched_run(r, op, skip) : op->size - skip;
      if (!cut(r, op, move, lane / op->parallel, lane % op->parallel, skip, size)) {
        return pccl_no_memory("the compiler");
      }
      skip += size;
    }
  }
  return POLYCCL_SUCCESS;
}

/* Output that is input in place and was never written still has to reach the output. */
static polyccl_result bring_untouched(refiner *r) {
  int input, output;
  pccl_collective_shape(&r->ir->spec, &input, &output);
  for (int rank = 0; rank < r->program->config.ranks; rank++) {
    for (int32_t i = 0; i < output;) {
      pccl_collective_spec spec = written_spec(r);
      int32_t first = pccl_collective_cell(&spec, rank, false, 0);
      int32_t count = 0;
      for (; i + count < output; count++) {
        int32_t cell = pccl_collective_cell(&spec, rank, true, i + count);
        bool held = cell >= first && cell < first + input &&
                    pccl_program_held(r->program, rank, pccl_ir_chunk_of_part(r->ir, r->program->input, cell - first));
        if (r->touched[rank][cell] || !held || !wanted(r, rank, i + count)) {
          break;
        }
      }
      if (count > 0) {
        spot from = {rank, pccl_collective_cell(&spec, rank, true, i) - first, POLYCCL_BUF_INPUT};
        spot to = {rank, i, POLYCCL_BUF_OUTPUT};
        pccl_ir_move move = {.kind = PCCL_COPY, .location = -1, .channel = -1, .send_tb = -1, .recv_tb = -1};
        if (!push_move(r, move, from, to, to, count)) {
          return pccl_no_memory("the compiler");
        }
      }
      i += count + 1;
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result lay_out(refiner *r) {
  const polyccl_program *program = r->program;
  size_t ranks = (size_t)program->config.ranks;
  pccl_ir *ir = r->ir;
  ir->scratch = pccl_zeroed(ranks, sizeof *ir->scratch);
  ir->first_slot = pccl_zeroed(ranks + 1, sizeof *ir->first_slot);
  r->scratch_base = pccl_zeroed(program->scratch.len * ranks, sizeof *r->scratch_base);
  r->spill = pccl_zeroed(ranks, sizeof *r->spill);
  r->touched = pccl_zeroed(ranks, sizeof *r->touched);
  if (ir->scratch == NULL || ir->first_slot == NULL || r->scratch_base == NULL || r->spill == NULL ||
      r->touched == NULL) {
    return pccl_no_memory("the compiler");
  }
  pccl_collective_spec renamed = written_spec(r);
  int32_t cells = pccl_collective_cells(&renamed);
  for (size_t rank = 0; rank < ranks; rank++) {
    int64_t next = 0;
    for (size_t s = 0; s < program->scratch.len; s++) {
      r->scratch_base[s * ranks + rank] = (int32_t)next;
      next += (int64_t)program->scratch.data[s].length[rank] * r->refine;
      if (next > POLYCCL_MAX_CHUNKS) {
        return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: rank %zu needs more than %d chunks of scratch", program->name, rank,
                         POLYCCL_MAX_CHUNKS);
      }
    }
    ir->scratch[rank] = r->spill[rank] = (int32_t)next;
    if (r->rename) {
      r->touched[rank] = pccl_zeroed((size_t)cells, 1);
      if (r->touched[rank] == NULL) {
        return pccl_no_memory("the compiler");
      }
    }
  }
  return POLYCCL_SUCCESS;
}

/* Scratch that renamed cells really use, moved together. */
static polyccl_result pack_spill(refiner *r) {
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
  pccl_collective_spec spec = written_spec(r);
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
  /* Runs stay runs: the packing keeps the order and every chunk of a run is in use. */
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

static polyccl_result refine_all(refiner *r) {
  PCCL_TRY(lay_out(r));
  for (size_t i = 0; i < r->program->operations.len; i++) {
    int32_t lanes = r->instances * r->program->operations.data[i].parallel;
    r->ir->lanes = lanes > r->ir->lanes ? lanes : r->ir->lanes;
  }
  for (size_t i = 0; i < r->program->operations.len; i++) {
    PCCL_TRY(refine_operation(r, &r->program->operations.data[i]));
  }
  if (r->rename && r->program->config.inplace) {
    PCCL_TRY(bring_untouched(r));
  }
  if (r->rename) {
    PCCL_TRY(pack_spill(r));
  }
  size_t next = 0;
  for (int rank = 0; rank < r->program->config.ranks; rank++) {
    r->ir->first_slot[rank] = next;
    next += (size_t)pccl_collective_cells(&r->ir->spec) + (size_t)r->ir->scratch[rank];
  }
  r->ir->first_slot[r->program->config.ranks] = next;
  return POLYCCL_SUCCESS;
}

/* True where an out-of-place plan of the program must be renamed. */
static bool must_rename(const refiner *r) {
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

/* Passes keep a few words for each chunk of each rank. */
static polyccl_result check_slots(const pccl_ir *ir) {
  enum { MOST_SLOTS = 1 << 26 };
  const polyccl_program *program = ir->program;
  int64_t chunks = (int64_t)program->cells * program->config.ranks + program->scratch_chunks;
  return chunks * ir->refine <= MOST_SLOTS
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_LIMIT,
                         "%s: %d instances cut the %lld chunks of all ranks into %lld (at most %d)", program->name,
                         ir->instances, (long long)chunks, (long long)(chunks * ir->refine), MOST_SLOTS);
}

polyccl_result pccl_refine_check(const pccl_ir *ir) {
  polyccl_placement placement = ir->options->placement;
  const polyccl_program *program = ir->program;
  int64_t most = program->input > program->output ? program->input : program->output;
  if (most * ir->refine > POLYCCL_MAX_CHUNKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: %d instances cut the buffers into %lld chunks (at most %d)",
                     program->name, ir->instances, (long long)(most * ir->refine), POLYCCL_MAX_CHUNKS);
  }
  polyccl_location nowhere = {program->name, 0};
  PCCL_TRY(pccl_program_check_amount(program, NULL, ir->instances, ir->refine, nowhere));
  PCCL_TRY(check_slots(ir));
  pccl_collective_spec spec = ir->spec;
  spec.chunks *= ir->refine;
  spec.chunks_out *= ir->refine;
  spec.inplace = placement == POLYCCL_AS_WRITTEN ? spec.inplace : placement == POLYCCL_IN_PLACE;
  return placement == POLYCCL_AS_WRITTEN ? POLYCCL_SUCCESS : pccl_collective_validate(&spec);
}

polyccl_result pccl_pass_refine(pccl_ir *ir) {
  polyccl_placement placement = ir->options->placement;
  const polyccl_program *program = ir->program;
  PCCL_TRY(pccl_refine_check(ir));
  refiner r = {.ir = ir, .program = program, .refine = ir->refine, .instances = ir->instances};
  ir->lanes = 1;
  ir->spec.chunks *= r.refine;
  ir->spec.chunks_out *= r.refine;
  ir->spec.inplace = placement == POLYCCL_AS_WRITTEN ? ir->spec.inplace : placement == POLYCCL_IN_PLACE;
  r.rename = !ir->spec.inplace && must_rename(&r);
  polyccl_result result = refine_all(&r);
  for (int rank = 0; r.touched != NULL && rank < program->config.ranks; rank++) {
    free(r.touched[rank]);
  }
  free(r.touched);
  free(r.spill);
  free(r.scratch_base);
  return result;
}
