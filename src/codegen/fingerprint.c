#include <polyccl/codegen.h>

#include "base/map.h"

static uint64_t hash_word(uint64_t hash, uint64_t value) { return pccl_mix64(hash ^ pccl_mix64(value)); }

static uint64_t hash_step(uint64_t hash, const polyccl_plan *plan, const polyccl_step *step) {
  hash = hash_word(hash, ((uint64_t)step->op << 24) | ((uint64_t)step->src_buf << 16) | ((uint64_t)step->dst_buf << 8));
  hash = hash_word(hash, ((uint64_t)(uint32_t)step->src << 32) | (uint32_t)step->dst);
  hash = hash_word(hash, ((uint64_t)(uint32_t)step->count << 32) | (uint32_t)step->waits);
  for (int32_t i = 0; i < step->waits; i++) {
    const polyccl_wait *wait = &plan->wait[step->wait + i];
    hash = hash_word(hash, ((uint64_t)(uint32_t)wait->tb << 32) | (uint32_t)wait->step);
  }
  return hash_word(hash, ((uint64_t)(uint32_t)step->recv << 32) | (uint32_t)step->send);
}

uint64_t polyccl_plan_fingerprint(const polyccl_plan *plan) {
  uint64_t hash = hash_word((uint64_t)plan->collective, (uint64_t)plan->ranks << 32 | (uint32_t)plan->chunks);
  hash = hash_word(hash, (uint64_t)plan->protocol << 8 | (uint64_t)plan->order << 1 | plan->inplace);
  hash = hash_word(hash, (uint64_t)(uint32_t)plan->root << 32 | (uint32_t)plan->chunks_out);
  for (size_t i = 0; i < plan->connections; i++) {
    const polyccl_connection *c = &plan->connection[i];
    hash =
        hash_word(hash_word(hash, (uint64_t)(uint32_t)c->src << 32 | (uint32_t)c->dst), (uint64_t)(uint32_t)c->channel);
  }
  for (size_t i = 0; i < plan->tbs; i++) {
    hash = hash_word(hash, (uint64_t)(uint32_t)plan->tb[i].rank << 32 | (uint32_t)plan->tb[i].steps);
    for (int32_t k = 0; k < plan->tb[i].steps; k++) {
      hash = hash_step(hash, plan, &plan->step[plan->tb[i].step + k]);
    }
  }
  return hash;
}
