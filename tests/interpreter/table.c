#include "table.h"

#include <string.h>

static bool many_inputs(const polyccl_plan *p) {
  return p->collective == POLYCCL_REDUCE_SCATTER || p->collective == POLYCCL_SCATTER ||
         p->collective == POLYCCL_ALLTOALL;
}

static bool many_outputs(const polyccl_plan *p) {
  return p->collective == POLYCCL_ALLGATHER || p->collective == POLYCCL_GATHER || p->collective == POLYCCL_ALLTOALL;
}

int32_t table_inputs(const polyccl_plan *p) { return p->chunks * (many_inputs(p) ? p->ranks : 1); }

int32_t table_outputs(const polyccl_plan *p) {
  if (p->collective == POLYCCL_CUSTOM && p->chunks_out > 0) {
    return p->chunks_out;
  }
  return p->chunks * (many_outputs(p) ? p->ranks : 1);
}

int32_t table_cell(const polyccl_plan *p, int32_t rank, uint8_t buffer, int32_t k) {
  int32_t in = table_inputs(p), out = table_outputs(p);
  if (buffer == POLYCCL_BUF_SCRATCH) {
    return in + out + k;
  }
  if (!p->inplace) {
    return buffer == POLYCCL_BUF_OUTPUT ? k : out + k;
  }
  if (buffer == POLYCCL_BUF_INPUT && many_outputs(p) && !many_inputs(p)) {
    return rank * p->chunks + k;
  }
  if (buffer == POLYCCL_BUF_OUTPUT && many_inputs(p) && !many_outputs(p)) {
    return rank * p->chunks + k;
  }
  return k;
}

int32_t table_cells(const polyccl_plan *p, int32_t rank) {
  return table_inputs(p) + table_outputs(p) + p->rank[rank].scratch;
}

static uint64_t special_float(uint64_t random) {
  static const uint32_t special[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x00000001, 0x80000001,
                                     0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7fc00000, 0xffc00001,
                                     0x7f800001, 0xff812345, 0x3f800001, 0x33800000};
  /* Mostly zeros, so that they meet each other; NaNs are rare enough for sums without one. */
  uint64_t most = random % 8 == 0 ? 16 : random % 2 == 0 ? 10 : 2;
  return special[random / 8 % most];
}

uint64_t table_leaf(const interpreter_options *options, int32_t rank, int32_t chunk, int32_t batch) {
  uint64_t x = options->seed * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xd1342543de82ef95u +
               (uint64_t)chunk * 0xaf251af3b0f025b5u + (uint64_t)batch * 0xb564ef22ec7aece5u;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
  x ^= x >> 32;
  return options->reduction == INTERPRETER_ADD ? x : special_float(x);
}

static bool is_nan(uint64_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

/* Where a float that is not a NaN stands in their order, -0 just below +0. */
static int64_t place_in_order(uint64_t bits) {
  int64_t magnitude = (int64_t)(bits & 0x7fffffff);
  return (bits & 0x80000000) != 0 ? -1 - magnitude : magnitude;
}

static uint64_t float_sum(uint64_t a, uint64_t b) {
  uint32_t bits[2] = {(uint32_t)a, (uint32_t)b};
  float x[2];
  memcpy(x, bits, sizeof x);
  x[0] += x[1];
  memcpy(bits, x, sizeof x[0]);
  return is_nan(bits[0]) ? 0x7fc00000 : bits[0];
}

uint64_t table_reduce(interpreter_reduction reduction, uint64_t a, uint64_t b) {
  if (reduction == INTERPRETER_ADD) {
    return a + b;
  }
  if (is_nan(a) || is_nan(b)) {
    return 0x7fc00000;
  }
  if (reduction == INTERPRETER_FLOAT_ADD) {
    return float_sum(a, b);
  }
  bool a_first = place_in_order(a) < place_in_order(b);
  return a_first == (reduction == INTERPRETER_MIN) ? a : b;
}

static uint64_t sum_over_ranks(const polyccl_plan *p, const interpreter_options *options, int32_t chunk,
                               int32_t batch) {
  uint64_t sum = table_leaf(options, 0, chunk, batch);
  for (int32_t r = 1; r < p->ranks; r++) {
    sum = table_reduce(options->reduction, sum, table_leaf(options, r, chunk, batch));
  }
  return sum;
}

bool table_wanted(const polyccl_plan *p, const interpreter_options *options, int32_t rank, int32_t k, int32_t batch,
                  uint64_t *number) {
  int32_t n = p->chunks;
  switch (p->collective) {
    case POLYCCL_ALLREDUCE: *number = sum_over_ranks(p, options, k, batch); return true;
    case POLYCCL_REDUCE: *number = sum_over_ranks(p, options, k, batch); return rank == p->root;
    case POLYCCL_REDUCE_SCATTER: *number = sum_over_ranks(p, options, rank * n + k, batch); return true;
    case POLYCCL_ALLGATHER: *number = table_leaf(options, k / n, k % n, batch); return true;
    case POLYCCL_GATHER: *number = table_leaf(options, k / n, k % n, batch); return rank == p->root;
    case POLYCCL_ALLTOALL: *number = table_leaf(options, k / n, rank * n + k % n, batch); return true;
    case POLYCCL_BROADCAST: *number = table_leaf(options, p->root, k, batch); return true;
    case POLYCCL_SCATTER: *number = table_leaf(options, p->root, rank * n + k, batch); return true;
    case POLYCCL_SENDRECV: *number = table_leaf(options, p->root, k, batch); return rank == p->peer;
    default: break;
  }
  for (size_t i = 0; i < p->posts; i++) {
    if (p->post[i].rank == rank && p->post[i].chunk == k) {
      *number = 0;
      for (int32_t l = 0; l < p->post[i].leaves; l++) {
        const polyccl_leaf *leaf = &p->leaf[p->post[i].leaf + l];
        uint64_t x = table_leaf(options, leaf->rank, leaf->chunk, batch);
        *number = l == 0 ? x : table_reduce(options->reduction, *number, x);
      }
      return true;
    }
  }
  return false;
}

bool table_has_root(const polyccl_plan *p) {
  return p->collective == POLYCCL_BROADCAST || p->collective == POLYCCL_REDUCE || p->collective == POLYCCL_GATHER ||
         p->collective == POLYCCL_SCATTER || p->collective == POLYCCL_SENDRECV;
}
