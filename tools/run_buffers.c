/* The buffers of polyccl run, with guards around them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "plan/plan.h"
#include "run_ranks.h"

enum { GUARD_BYTE = 0xa5 };

/* Bytes of `chunks` chunks of user memory, without guards. */
static bool count_bytes(const pccl_run_args *args, const polyccl_plan *plan, size_t count, int chunks, size_t *bytes) {
  size_t elements, block = (size_t)chunks / (size_t)plan->chunks, rest = (size_t)chunks % (size_t)plan->chunks;
  return !__builtin_mul_overflow(count, block, &elements) &&
         !__builtin_add_overflow(elements, count / (size_t)plan->chunks * rest, &elements) &&
         !__builtin_mul_overflow(elements, polyccl_dtype_size(args->dtype), bytes) && *bytes <= SIZE_MAX / 4;
}

static size_t guard_bytes(const pccl_run_args *args) {
  return 2 * PCCL_RUN_GUARD + args->offset * polyccl_dtype_size(args->dtype);
}

/* Without guards. */
static bool user_bytes(const pccl_run_args *args, const polyccl_plan *plan, size_t count, size_t bytes[2]) {
  pccl_collective_spec spec = pccl_plan_spec(plan);
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  if (!count_bytes(args, plan, count, in, &bytes[0]) || !count_bytes(args, plan, count, out, &bytes[1])) {
    return false;
  }
  if (plan->inplace) {
    bytes[0] = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    bytes[1] = 0;
  }
  return true;
}

bool pccl_run_buffer_bytes(const pccl_run_args *args, const polyccl_plan *plan, size_t count, size_t bytes[2]) {
  bool fits = user_bytes(args, plan, count, bytes);
  bytes[0] += guard_bytes(args);
  bytes[1] += guard_bytes(args);
  return fits;
}

static polyccl_result make_buffer(const pccl_run_args *args, size_t bytes, char **memory) {
  size_t all = bytes + guard_bytes(args);
  void *made = NULL;
  if (args->shared) {
    PCCL_TRY(polyccl_mem_alloc(&made, all));
  } else if (posix_memalign(&made, (size_t)sysconf(_SC_PAGESIZE), all) != 0) {
    return pccl_fail(POLYCCL_ERROR_MEMORY, "no memory for a buffer of %zu bytes", all);
  }
  *memory = made;
  return POLYCCL_SUCCESS;
}

void pccl_run_free_buffers(const pccl_run_args *args, pccl_run_buffers *b) {
  for (int i = 0; i < 2; i++) {
    if (args->shared) {
      polyccl_mem_free(b->memory[i]);
    } else {
      free(b->memory[i]);
    }
  }
}

polyccl_result pccl_run_make_buffers(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count,
                                     pccl_run_buffers *b) {
  size_t element = polyccl_dtype_size(args->dtype);
  pccl_collective_spec spec = pccl_plan_spec(plan);
  *b = (pccl_run_buffers){0};
  if (!user_bytes(args, plan, count, b->bytes)) {
    return pccl_fail(POLYCCL_ERROR_MEMORY, "no memory for buffers of %zu elements per block", count);
  }
  polyccl_result result = make_buffer(args, b->bytes[0], &b->memory[0]);
  if (result == POLYCCL_SUCCESS) {
    result = make_buffer(args, b->bytes[1], &b->memory[1]);
  }
  if (result != POLYCCL_SUCCESS) {
    pccl_run_free_buffers(args, b);
    return result;
  }
  size_t shift = PCCL_RUN_GUARD + args->offset * element;
  b->input = b->memory[0] + shift;
  b->output = b->memory[1] + shift;
  if (plan->inplace) {
    int in_cell = pccl_collective_cell(&spec, rank, false, 0), out_cell = pccl_collective_cell(&spec, rank, true, 0);
    b->output = b->input + (size_t)(out_cell / plan->chunks) * count * element;
    b->input += (size_t)(in_cell / plan->chunks) * count * element;
  }
  return POLYCCL_SUCCESS;
}

void pccl_run_reset(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count, pccl_run_buffers *b) {
  size_t shift = args->offset * polyccl_dtype_size(args->dtype);
  for (int i = 0; i < 2; i++) {
    memset(b->memory[i], GUARD_BYTE, b->bytes[i] + 2 * PCCL_RUN_GUARD + shift);
  }
  pccl_run_fill(plan, rank, args->dtype, args->op, count, b->input);
}

uint64_t pccl_run_overwritten(const pccl_run_args *args, const pccl_run_buffers *b) {
  uint64_t found = 0;
  size_t shift = PCCL_RUN_GUARD + args->offset * polyccl_dtype_size(args->dtype);
  for (int i = 0; i < 2; i++) {
    for (size_t k = 0; k < shift; k++) {
      found += (unsigned char)b->memory[i][k] != GUARD_BYTE;
    }
    for (size_t k = 0; k < PCCL_RUN_GUARD; k++) {
      found += (unsigned char)b->memory[i][shift + b->bytes[i] + k] != GUARD_BYTE;
    }
  }
  return found;
}
