#include "plan/xml_target.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"

#define BIT(collective) (1u << POLYCCL_##collective)

/* The figures are those of the executors' sources: array sizes, and the widths of the fields that keep a number. The
 * parsers refuse a file once 4096 elements are kept, before they see its end. A chain of more reductions than `chained`
 * is written beyond the end of an array. */
static const pccl_xml_target targets[] = {
    [POLYCCL_FORMAT_XML] =
        {
            .name = "microsoft/msccl",
            .reduce_scatter = "reduce_scatter",
            .collectives = BIT(ALLREDUCE) | BIT(ALLGATHER) | BIT(REDUCE_SCATTER) | BIT(ALLTOALL) | BIT(BROADCAST) |
                           BIT(REDUCE) | BIT(CUSTOM),
            .ranks = 1024,
            .tbs = 216,
            .steps = 256,
            .elements = 4095,
            .count = 71,
            .channels = 32,
            .peers = 32,
            .awaited_tb = 128,
            .chained = 16,
            .chunks = 32767,
            .name_bytes = 255,
            .depth = {[POLYCCL_SIMPLE] = 2, [POLYCCL_LL] = 8, [POLYCCL_LL128] = 8},
            .message = {[POLYCCL_SIMPLE] = 2 << 20, [POLYCCL_LL] = 32768, [POLYCCL_LL128] = 576000},
        },
    [POLYCCL_FORMAT_XML_AZURE] =
        {
            .name = "the Azure executor",
            .reduce_scatter = "reducescatter",
            .place_flags = true,
            .no_limit_is_zero = true,
            .collectives =
                BIT(ALLREDUCE) | BIT(ALLGATHER) | BIT(REDUCE_SCATTER) | BIT(ALLTOALL) | BIT(BROADCAST) | BIT(REDUCE),
            .ranks = 1024,
            .tbs = 1024,
            .steps = 64,
            .elements = 4095,
            .count = 71,
            .channels = 32,
            .peers = 32,
            .awaited_tb = 128,
            .chained = 16,
            .chunks = 32767,
            .name_bytes = 255,
            .depth = {[POLYCCL_SIMPLE] = 2, [POLYCCL_LL] = 8, [POLYCCL_LL128] = 8},
            .message = {[POLYCCL_SIMPLE] = 2 << 20, [POLYCCL_LL] = 32768, [POLYCCL_LL128] = 576000},
        },
    [POLYCCL_FORMAT_XML_RCCL] =
        {
            .name = "RCCL",
            .reduce_scatter = "reducescatter",
            .place_flags = true,
            .no_limit_is_zero = true,
            .splits_fused = true,
            .collectives = BIT(ALLREDUCE) | BIT(ALLGATHER) | BIT(REDUCE_SCATTER) | BIT(ALLTOALL) | BIT(BROADCAST) |
                           BIT(REDUCE) | BIT(GATHER) | BIT(SCATTER),
            .ranks = 1024,
            .tbs = 64,
            .steps = 64,
            .elements = 4095,
            .count = 71,
            .channels = 64,
            .peers = 32,
            .awaited_tb = 64,
            .chained = 16,
            .chunks = 32767,
            .name_bytes = 255,
            .depth = {[POLYCCL_SIMPLE] = 2, [POLYCCL_LL] = 8, [POLYCCL_LL128] = 8},
            .message = {[POLYCCL_SIMPLE] = 2 << 20, [POLYCCL_LL] = 16384, [POLYCCL_LL128] = 50176},
        },
};

const pccl_xml_target *pccl_xml_target_of(polyccl_format format) { return &targets[format]; }

int32_t pccl_xml_chunks_per_loop(const polyccl_plan *plan) {
  int32_t input, output;
  polyccl_plan_shape(plan, 0, &input, &output);
  bool per_block = plan->collective == POLYCCL_GATHER || plan->collective == POLYCCL_SCATTER;
  return (input > output) == !per_block ? input : output;
}

bool pccl_xml_writes_wait(const polyccl_plan *plan, const polyccl_thread_block *tb, int32_t step, polyccl_wait wait) {
  return wait.tb != (int32_t)(tb - plan->tb) - plan->rank[tb->rank].tb || wait.step >= step;
}

static int32_t count_written_waits(const polyccl_plan *plan, const polyccl_thread_block *tb, int32_t s) {
  const polyccl_step *step = &plan->step[tb->step + s];
  int32_t waits = 0;
  for (int32_t i = 0; i < step->waits; i++) {
    waits += pccl_xml_writes_wait(plan, tb, s, plan->wait[step->wait + i]) ? 1 : 0;
  }
  return waits;
}

int32_t pccl_xml_elements(const polyccl_plan *plan, const polyccl_thread_block *tb, int32_t step) {
  int32_t waits = count_written_waits(plan, tb, step);
  return waits > 1 ? waits : 1;
}

/* What a check of one step needs. */
typedef struct place {
  const pccl_xml_target *target;
  const polyccl_plan *plan;
  int32_t rank, tb; /* tb: local number */
} place;

static const char fewer[] = "compile with fewer instances or channels, or keep the plan format";

static polyccl_result fail_rank_over(const place *at, const char *what, int64_t value, int32_t max,
                                     const char *remedy) {
  return pccl_fail(POLYCCL_ERROR_LIMIT, "rank %d has %lld %s; %s takes at most %d: %s", at->rank, (long long)value,
                   what, at->target->name, max, remedy);
}

static polyccl_result fail_step_over(const place *at, const polyccl_step *step, const char *what, int64_t value,
                                     int32_t max, const char *remedy) {
  return pccl_fail_at(POLYCCL_ERROR_LIMIT, pccl_step_location(at->plan, step),
                      "rank %d thread block %d %s %lld; %s takes at most %d: %s", at->rank, at->tb, what,
                      (long long)value, at->target->name, max, remedy);
}

/* XML gives a thread block one peer per direction and one channel. */
static polyccl_result check_tb_connections(const place *at, const polyccl_thread_block *tb) {
  int32_t used[2] = {-1, -1}; /* receive, send */
  for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
    const polyccl_step *step = &at->plan->step[s];
    int32_t now[2] = {step->recv, step->send};
    for (int d = 0; d < 2; d++) {
      if (now[d] >= 0 && used[d] >= 0 && now[d] != used[d]) {
        const polyccl_connection *a = &at->plan->connection[used[d]], *b = &at->plan->connection[now[d]];
        return pccl_fail_at(POLYCCL_ERROR_UNSUPPORTED, pccl_step_location(at->plan, step),
                            "rank %d thread block %d uses two connections to %s: rank %d channel %d, then rank %d "
                            "channel %d; MSCCL XML gives a thread block one: compile with the connection policy, or "
                            "keep the plan format",
                            at->rank, at->tb, d == 0 ? "receive" : "send", d == 0 ? a->src : a->dst, a->channel,
                            d == 0 ? b->src : b->dst, b->channel);
      }
      used[d] = now[d] >= 0 ? now[d] : used[d];
    }
  }
  if (used[0] >= 0 && used[1] >= 0 && at->plan->connection[used[0]].channel != at->plan->connection[used[1]].channel) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED,
                     "rank %d thread block %d receives on channel %d and sends on channel %d; MSCCL XML gives a thread "
                     "block one channel: give both the same, or keep the plan format",
                     at->rank, at->tb, at->plan->connection[used[0]].channel, at->plan->connection[used[1]].channel);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_xml_check_waits(const polyccl_plan *plan, int32_t t, int32_t s) {
  const polyccl_thread_block *tb = &plan->tb[t];
  const polyccl_step *step = &plan->step[tb->step + s];
  const polyccl_plan_rank *rank = &plan->rank[tb->rank];
  for (int32_t i = 0; i < step->waits; i++) {
    polyccl_wait wait = plan->wait[step->wait + i];
    if (wait.tb >= rank->tbs || wait.step >= plan->tb[rank->tb + wait.tb].steps) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, pccl_step_location(plan, step),
                          "rank %d thread block %d step %d waits for thread block %d step %d, which does not exist",
                          tb->rank, t - rank->tb, s, wait.tb, wait.step);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_wait_targets(const place *at, const polyccl_thread_block *tb, int32_t s) {
  const polyccl_step *step = &at->plan->step[tb->step + s];
  PCCL_TRY(pccl_xml_check_waits(at->plan, (int32_t)(tb - at->plan->tb), s));
  for (int32_t i = 0; i < step->waits; i++) {
    polyccl_wait wait = at->plan->wait[step->wait + i];
    if (wait.tb >= at->target->awaited_tb) {
      return fail_step_over(at, step, "waits for thread block", wait.tb, at->target->awaited_tb - 1, fewer);
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_step_limits(const place *at, const polyccl_thread_block *tb, int32_t s, int64_t *elements) {
  const polyccl_step *step = &at->plan->step[tb->step + s];
  const pccl_xml_target *target = at->target;
  PCCL_TRY(check_wait_targets(at, tb, s));
  *elements += pccl_xml_elements(at->plan, tb, s);
  if (step->count > target->count) {
    return fail_step_over(at, step, "has a step with a count of", step->count, target->count,
                          "split the reference, or compile with fewer instances");
  }
  int32_t channel = step->recv >= 0   ? at->plan->connection[step->recv].channel
                    : step->send >= 0 ? at->plan->connection[step->send].channel
                                      : 0;
  if (channel >= target->channels) {
    return fail_step_over(at, step, "uses channel", channel, target->channels - 1, fewer);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_tb_limits(const place *at, const polyccl_thread_block *tb, int64_t *elements) {
  int64_t steps = 0;
  PCCL_TRY(check_tb_connections(at, tb));
  for (int32_t s = 0; s < tb->steps; s++) {
    PCCL_TRY(check_step_limits(at, tb, s, &steps));
  }
  if (steps > at->target->steps) {
    return pccl_fail(
        POLYCCL_ERROR_LIMIT,
        "rank %d thread block %d has %lld steps, counting one per wait%s; %s takes at most %d: compile with "
        "more channels, or keep the plan format",
        at->rank, at->tb, (long long)steps, at->target->splits_fused ? " and each part of a fused step" : "",
        at->target->name, at->target->steps);
  }
  *elements += 1 + steps;
  return POLYCCL_SUCCESS;
}

/* Counts the thread blocks of the rank that send and receive on each channel. */
static polyccl_result check_peer_limits(const place *at, int32_t *peers) {
  const polyccl_plan_rank *rank = &at->plan->rank[at->rank];
  memset(peers, 0, 2 * (size_t)at->target->channels * sizeof *peers);
  for (int32_t t = rank->tb; t < rank->tb + rank->tbs; t++) {
    bool seen[2] = {false, false};
    for (int32_t s = at->plan->tb[t].step; s < at->plan->tb[t].step + at->plan->tb[t].steps; s++) {
      const polyccl_step *step = &at->plan->step[s];
      int32_t used[2] = {step->recv, step->send};
      for (int d = 0; d < 2; d++) {
        if (used[d] >= 0 && !seen[d]) {
          seen[d] = true;
          peers[2 * at->plan->connection[used[d]].channel + d]++;
        }
      }
    }
  }
  for (int32_t i = 0; i < 2 * at->target->channels; i++) {
    if (peers[i] > at->target->peers) {
      return fail_rank_over(
          at, i % 2 == 0 ? "peers that it receives from on one channel" : "peers that it sends to on one channel",
          peers[i], at->target->peers, "spread the peers over more channels, or keep the plan format");
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_rank_limits(const place *at, int32_t *peers) {
  const polyccl_plan_rank *rank = &at->plan->rank[at->rank];
  int64_t elements = 1 + at->plan->ranks + (rank->tbs == 0 ? 1 : 0); /* the idle thread block that is written */
  int32_t max = rank->input > rank->output ? rank->input : rank->output;
  max = rank->scratch > max ? rank->scratch : max;
  if (max > at->target->chunks) {
    return fail_rank_over(at, "chunks in a buffer", max, at->target->chunks, "compile with fewer instances or chunks");
  }
  if (rank->tbs > at->target->tbs) {
    return fail_rank_over(at, "thread blocks", rank->tbs, at->target->tbs, fewer);
  }
  for (int32_t t = 0; t < rank->tbs; t++) {
    place here = *at;
    here.tb = t;
    PCCL_TRY(check_tb_limits(&here, &at->plan->tb[rank->tb + t], &elements));
  }
  PCCL_TRY(check_peer_limits(at, peers));
  if (elements > at->target->elements) {
    return fail_rank_over(at, "XML elements", elements, at->target->elements, fewer);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_xml_target_check_kind(const pccl_xml_target *target, const polyccl_plan *plan) {
  const char *collective = polyccl_collective_name(plan->collective);
  if ((target->collectives >> plan->collective & 1) == 0) {
    bool elsewhere = (pccl_xml_target_of(POLYCCL_FORMAT_XML_RCCL)->collectives >> plan->collective & 1) != 0;
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED,
                     "%s has no %s, so none of its calls would use this plan: %skeep the plan format", target->name,
                     collective, elsewhere ? "write it for RCCL, which has, or " : "");
  }
  if (plan->order != POLYCCL_BATCH_MAJOR) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED,
                     "the plan's loop order is task-major and %s runs batch-major: compile with the connection policy, "
                     "or keep the plan format",
                     target->name);
  }
  if (plan->collective == POLYCCL_CUSTOM && plan->chunks_out != 0 && plan->chunks_out != plan->chunks) {
    return pccl_fail(
        POLYCCL_ERROR_UNSUPPORTED,
        "the input has %d chunks and the output %d; %s needs the same number for both: keep the plan format",
        plan->chunks, plan->chunks_out, target->name);
  }
  if (plan->ranks > target->ranks) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the plan has %d ranks; %s takes at most %d: keep the plan format",
                     plan->ranks, target->name, target->ranks);
  }
  if (plan->name != NULL && strlen(plan->name) > (size_t)target->name_bytes) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the plan's name has %zu bytes; %s takes at most %d: give it a shorter name",
                     strlen(plan->name), target->name, target->name_bytes);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_depth_limit(const pccl_xml_target *target, const polyccl_plan *plan) {
  int32_t depth = target->depth[plan->protocol], needed = plan->fifo_depth;
  if ((needed == 0 || needed > depth) && pccl_plan_min_depth(plan, &needed) == POLYCCL_ERROR_MEMORY) {
    return POLYCCL_ERROR_MEMORY; /* a plan may name more than it needs; whether it is right is not checked here */
  }
  if (needed > depth) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "the plan needs a FIFO depth of %d; %s has %d with %s: use protocol LL or LL128 (up to %d), or "
                     "send less before receiving",
                     needed, target->name, depth, polyccl_protocol_name(plan->protocol), target->depth[POLYCCL_LL]);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_xml_target_check(const pccl_xml_target *target, const polyccl_plan *plan) {
  PCCL_TRY(check_depth_limit(target, plan));
  int32_t *peers = pccl_array(2 * (size_t)target->channels, sizeof *peers);
  if (peers == NULL) {
    return pccl_no_memory("writing a plan");
  }
  polyccl_result result = POLYCCL_SUCCESS;
  for (int32_t r = 0; r < plan->ranks && result == POLYCCL_SUCCESS; r++) {
    result = check_rank_limits(&(place){target, plan, r, 0}, peers);
  }
  free(peers);
  return result;
}

polyccl_result pccl_xml_target_accepts(const pccl_xml_target *target, const polyccl_program_config *config,
                                       polyccl_loop_order order) {
  polyccl_plan head = {.name = (char *)(uintptr_t)config->name,
                       .collective = config->collective,
                       .ranks = config->ranks,
                       .chunks = config->chunks,
                       .chunks_out = config->chunks_out,
                       .protocol = config->protocol,
                       .order = order};
  PCCL_TRY(pccl_xml_target_check_kind(target, &head));
  int64_t parts = config->instances > 0 ? config->instances : 1;
  polyccl_plan_rank rank = {0};
  polyccl_plan_shape(&head, 0, &rank.input, &rank.output);
  int64_t max = (rank.input > rank.output ? rank.input : rank.output) * parts;
  return max <= target->chunks ? POLYCCL_SUCCESS
                               : fail_rank_over(&(place){target, &head, 0, 0}, "chunks in a buffer", max,
                                                target->chunks, "compile with fewer instances or chunks");
}
