#include "table.h"

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

uint64_t table_leaf(uint64_t seed, int32_t rank, int32_t chunk, int32_t batch) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xd1342543de82ef95u +
               (uint64_t)chunk * 0xaf251af3b0f025b5u + (uint64_t)batch * 0xb564ef22ec7aece5u;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
  return x ^ (x >> 32);
}

static uint64_t sum_over_ranks(const polyccl_plan *p, uint64_t seed, int32_t chunk, int32_t batch) {
  uint64_t sum = 0;
  for (int32_t r = 0; r < p->ranks; r++) {
    sum += table_leaf(seed, r, chunk, batch);
  }
  return sum;
}

bool table_wanted(const polyccl_plan *p, uint64_t seed, int32_t rank, int32_t k, int32_t batch, uint64_t *number) {
  int32_t n = p->chunks;
  switch (p->collective) {
    case POLYCCL_ALLREDUCE: *number = sum_over_ranks(p, seed, k, batch); return true;
    case POLYCCL_REDUCE: *number = sum_over_ranks(p, seed, k, batch); return rank == p->root;
    case POLYCCL_REDUCE_SCATTER: *number = sum_over_ranks(p, seed, rank * n + k, batch); return true;
    case POLYCCL_ALLGATHER: *number = table_leaf(seed, k / n, k % n, batch); return true;
    case POLYCCL_GATHER: *number = table_leaf(seed, k / n, k % n, batch); return rank == p->root;
    case POLYCCL_ALLTOALL: *number = table_leaf(seed, k / n, rank * n + k % n, batch); return true;
    case POLYCCL_BROADCAST: *number = table_leaf(seed, p->root, k, batch); return true;
    case POLYCCL_SCATTER: *number = table_leaf(seed, p->root, rank * n + k, batch); return true;
    case POLYCCL_SENDRECV: *number = table_leaf(seed, p->root, k, batch); return rank == p->peer;
    default: break;
  }
  for (size_t i = 0; i < p->posts; i++) {
    if (p->post[i].rank == rank && p->post[i].chunk == k) {
      *number = 0;
      for (int32_t l = 0; l < p->post[i].leaves; l++) {
        const polyccl_leaf *leaf = &p->leaf[p->post[i].leaf + l];
        *number += table_leaf(seed, leaf->rank, leaf->chunk, batch);
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
