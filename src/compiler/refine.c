/* refine: cuts every operation into its instances and places it in the buffers of the plan.
 *
 * Every chunk of the program becomes `refine` chunks of the plan. An operation moves all parts of its chunks, so the
 * result is right for any mix of counts and scopes. The pass lower finds dependencies between parts.
 *   interleaved: chunk k is the parts from k * refine on, and instance i takes the i-th run of the operation's parts
 *   batched:     instance i owns the i-th run of every block (of scratch: of the buffer) */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/rename.h"

/* How many of the program's chunks batched instances cut together: a block, or a whole buffer. */
static int32_t run_length(const polyccl_program *program, pccl_place place) {
  if (place.buffer >= POLYCCL_SCRATCH) {
    return program->scratch.data[place.buffer - POLYCCL_SCRATCH].length[place.rank];
  }
  if (program->config.collective == POLYCCL_CUSTOM) {
    return place.buffer == POLYCCL_INPUT ? program->input : program->output;
  }
  return program->config.chunks;
}

/* The first plan chunk (within the program's buffer) of `index`'s parts from `part` on, in one instance. */
static int32_t batched_offset(const pccl_refiner *r, pccl_place place, int32_t program_instance) {
  int32_t run = run_length(r->program, place), parts = r->refine / r->program_instances;
  int32_t block = place.index / run, within = place.index % run;
  return block * run * r->refine + (program_instance * run + within) * parts;
}

static pccl_spot spot_of(const pccl_refiner *r, pccl_place place, int32_t offset) {
  if (place.buffer < POLYCCL_SCRATCH) {
    return (pccl_spot){place.rank, offset,
                       (uint8_t)(place.buffer == POLYCCL_INPUT ? POLYCCL_BUF_INPUT : POLYCCL_BUF_OUTPUT)};
  }
  size_t which = (size_t)(place.buffer - POLYCCL_SCRATCH) * (size_t)r->program->config.ranks + (size_t)place.rank;
  return (pccl_spot){place.rank, r->scratch_base[which] + offset, POLYCCL_BUF_SCRATCH};
}

static bool is_next_of(pccl_spot a, pccl_spot b, int32_t distance) {
  return a.rank == b.rank && a.buffer == b.buffer && b.offset == a.offset + distance;
}

/* ---- moves ---- */

static bool push_move(pccl_refiner *r, pccl_ir_move move, pccl_spot src, pccl_spot dst, pccl_spot acc, int32_t count) {
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
    /* A local reduction is dst += src, so its first operand is brought to dst before. */
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

static pccl_spot shift_spot(pccl_spot at, int32_t by) {
  at.offset += by;
  return at;
}

static bool add_move(pccl_refiner *r, pccl_ir_move move, pccl_spot src, pccl_spot dst, int32_t count) {
  if (!r->rename) {
    return push_move(r, move, src, dst, dst, count);
  }
  /* One move for each maximal run in which source, destination and local operand each stay contiguous. */
  for (int32_t at = 0; at < count;) {
    pccl_spot from = pccl_rename_read(r, shift_spot(src, at)), to = pccl_rename_write(r, shift_spot(dst, at));
    pccl_spot acc = move.kind == PCCL_REDUCE ? pccl_rename_read(r, shift_spot(dst, at)) : to;
    int32_t end = at + 1;
    while (end < count && is_next_of(from, pccl_rename_read(r, shift_spot(src, end)), end - at) &&
           is_next_of(to, pccl_rename_write(r, shift_spot(dst, end)), end - at) &&
           (move.kind != PCCL_REDUCE || is_next_of(acc, pccl_rename_read(r, shift_spot(dst, end)), end - at))) {
      end++;
    }
    if (!push_move(r, move, from, to, acc, end - at)) {
      return false;
    }
    at = end;
  }
  for (int32_t at = 0; at < count && dst.buffer != POLYCCL_BUF_SCRATCH; at++) {
    r->touched[dst.rank][pccl_rename_cell(r, shift_spot(dst, at))] = 1;
  }
  return true;
}

static int32_t hint_of_instance(int32_t hint, int32_t instances, int32_t instance) {
  return hint < 0 ? -1 : hint * instances + instance;
}

/* Adds the moves of `size` chunks of an operation, from its chunk `skip` on, in one instance and scope part. */
static bool refine_run(pccl_refiner *r, const pccl_operation *op, pccl_ir_move move, int32_t program_instance,
                       int32_t part, int32_t skip, int32_t size) {
  pccl_place src = op->src, dst = op->dst;
  src.index += skip;
  dst.index += skip;
  int32_t per = r->refine / r->program_instances; /* parts of a chunk in one instance */
  if (r->program->config.replication == POLYCCL_BATCHED) {
    int32_t count = size * per / op->parallel;
    return add_move(r, move, shift_spot(spot_of(r, src, batched_offset(r, src, program_instance)), part * count),
                    shift_spot(spot_of(r, dst, batched_offset(r, dst, program_instance)), part * count), count);
  }
  int32_t count = size * per / op->parallel, shift = move.instance * count;
  return add_move(r, move, spot_of(r, src, src.index * r->refine + shift),
                  spot_of(r, dst, dst.index * r->refine + shift), count);
}

/* Chunks from `skip` on up to where a block of the source or of the destination ends. */
static int32_t batched_run(const pccl_refiner *r, const pccl_operation *op, int32_t skip) {
  pccl_place src = op->src, dst = op->dst;
  int32_t size = op->size - skip;
  int32_t src_left = run_length(r->program, src) - (src.index + skip) % run_length(r->program, src);
  int32_t dst_left = run_length(r->program, dst) - (dst.index + skip) % run_length(r->program, dst);
  size = size < src_left ? size : src_left;
  return size < dst_left ? size : dst_left;
}

static polyccl_result refine_operation(pccl_refiner *r, const pccl_operation *op) {
  int32_t instances = r->program_instances * op->parallel;
  for (int32_t instance = 0; instance < instances; instance++) {
    pccl_ir_move move = {.kind = op->kind,
                         .instance = instance,
                         .location = op->location,
                         .channel = hint_of_instance(op->hints.channel, r->ir->instances, instance),
                         .send_tb = hint_of_instance(op->hints.send_tb, r->ir->instances, instance),
                         .recv_tb = hint_of_instance(op->hints.recv_tb, r->ir->instances, instance)};
    for (int32_t skip = 0; skip < op->size;) {
      int32_t size = r->program->config.replication == POLYCCL_BATCHED ? batched_run(r, op, skip) : op->size - skip;
      if (!refine_run(r, op, move, instance / op->parallel, instance % op->parallel, skip, size)) {
        return pccl_no_memory("the compiler");
      }
      skip += size;
    }
  }
  return POLYCCL_SUCCESS;
}

/* Output chunks that are input chunks in place, and were never written, still have to reach the output. */
static polyccl_result bring_untouched(pccl_refiner *r) {
  int input, output;
  pccl_collective_shape(&r->ir->spec, &input, &output);
  for (int rank = 0; rank < r->program->config.ranks; rank++) {
    for (int32_t i = 0; i < output;) {
      pccl_collective_spec spec = pccl_rename_spec(r);
      int32_t first = pccl_collective_cell(&spec, rank, false, 0);
      int32_t count = 0;
      for (; i + count < output; count++) {
        int32_t cell = pccl_collective_cell(&spec, rank, true, i + count);
        bool held = cell >= first && cell < first + input &&
                    pccl_program_held(r->program, rank, pccl_ir_chunk_of_part(r->ir, r->program->input, cell - first));
        if (r->touched[rank][cell] || !held || !pccl_rename_is_wanted(r, rank, i + count)) {
          break;
        }
      }
      if (count > 0) {
        pccl_spot from = {rank, pccl_collective_cell(&spec, rank, true, i) - first, POLYCCL_BUF_INPUT};
        pccl_spot to = {rank, i, POLYCCL_BUF_OUTPUT};
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

static polyccl_result lay_out_buffers(pccl_refiner *r) {
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
  pccl_collective_spec renamed = pccl_rename_spec(r);
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

static polyccl_result refine_all(pccl_refiner *r) {
  PCCL_TRY(lay_out_buffers(r));
  for (size_t i = 0; i < r->program->operations.len; i++) {
    int32_t instances = r->program_instances * r->program->operations.data[i].parallel;
    r->ir->instances = instances > r->ir->instances ? instances : r->ir->instances;
  }
  for (size_t i = 0; i < r->program->operations.len; i++) {
    PCCL_TRY(refine_operation(r, &r->program->operations.data[i]));
  }
  if (r->rename && r->program->config.inplace) {
    PCCL_TRY(bring_untouched(r));
  }
  if (r->rename) {
    PCCL_TRY(pccl_rename_pack(r));
  }
  size_t next = 0;
  for (int rank = 0; rank < r->program->config.ranks; rank++) {
    r->ir->first_slot[rank] = next;
    next += (size_t)pccl_collective_cells(&r->ir->spec) + (size_t)r->ir->scratch[rank];
  }
  r->ir->first_slot[r->program->config.ranks] = next;
  return POLYCCL_SUCCESS;
}

/* Passes keep a few words for each chunk of each rank, so 2^26 chunks are half a gigabyte in the pass lower alone. */
static polyccl_result check_slots(const pccl_ir *ir) {
  enum { MAX_SLOTS = 1 << 26 };
  const polyccl_program *program = ir->program;
  int64_t chunks = (int64_t)program->cells * program->config.ranks + program->scratch_chunks;
  return chunks * ir->refine <= MAX_SLOTS
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_LIMIT,
                         "%s: %d instances cut the %lld chunks of all ranks into %lld (at most %d)", program->name,
                         ir->program_instances, (long long)chunks, (long long)(chunks * ir->refine), MAX_SLOTS);
}

polyccl_result pccl_refine_check(const pccl_ir *ir) {
  polyccl_placement placement = ir->options->placement;
  const polyccl_program *program = ir->program;
  int64_t max = program->input > program->output ? program->input : program->output;
  if (max * ir->refine > POLYCCL_MAX_CHUNKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "%s: %d instances cut the buffers into %lld chunks (at most %d)",
                     program->name, ir->program_instances, (long long)(max * ir->refine), POLYCCL_MAX_CHUNKS);
  }
  polyccl_location nowhere = {program->name, 0};
  PCCL_TRY(pccl_program_check_amount(program, NULL, ir->program_instances, ir->refine, nowhere));
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
  pccl_refiner r = {.ir = ir, .program = program, .refine = ir->refine, .program_instances = ir->program_instances};
  ir->instances = 1;
  ir->spec.chunks *= r.refine;
  ir->spec.chunks_out *= r.refine;
  ir->spec.inplace = placement == POLYCCL_AS_WRITTEN ? ir->spec.inplace : placement == POLYCCL_IN_PLACE;
  r.rename = !ir->spec.inplace && pccl_rename_is_needed(&r);
  polyccl_result result = refine_all(&r);
  for (int rank = 0; r.touched != NULL && rank < program->config.ranks; rank++) {
    free(r.touched[rank]);
  }
  free(r.touched);
  free(r.spill);
  free(r.scratch_base);
  return result;
}
