/* Plan -> this rank's part of it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/codegen.h>

#include "base/error.h"
#include "executor/generated.h"
#include "executor/plans.h"
#include "kernel/mean.h"
#include "plan/alias.h"
#include "plan/contributions.h"
#include "plan/plan.h"

enum {
  MIN_DEPTH = 4,
  MIN_LINE_DEPTH = 16, /* the sender looks for credits once in so many messages */
  SIMPLE_RING = 20,    /* log2 of bytes: a ring fills L2, slots pass through it */
  LL_RING = 17,
  LL128_RING = 19,
  MIN_SLOT = 4096
};

/* The steps at both ends of every message, in order, by connection. */
typedef struct message_table {
  size_t *first;        /* per connection, one more at the end */
  int32_t *send, *recv; /* steps */
} message_table;

static void free_messages(message_table *table) {
  free(table->first);
  free(table->send);
  free(table->recv);
}

/* The verified plan has as many sends as receives on each connection, each side in one thread block. */
static polyccl_result list_messages(const polyccl_plan *plan, message_table *table) {
  table->first = pccl_zeroed(plan->connections + 2, sizeof *table->first);
  if (table->first == NULL) {
    return pccl_no_memory("a plan's messages");
  }
  size_t *next = table->first + 1; /* counts, then running positions, at the end the next connection's first */
  for (size_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].send >= 0) {
      next[plan->step[i].send + 1]++;
    }
  }
  for (size_t c = 0; c < plan->connections; c++) {
    next[c + 1] += next[c];
  }
  size_t messages = next[plan->connections];
  table->send = pccl_array(messages, sizeof *table->send);
  table->recv = pccl_array(messages, sizeof *table->recv);
  size_t *received = pccl_array(plan->connections + 1, sizeof *received);
  if (table->send == NULL || table->recv == NULL || received == NULL) {
    free(received);
    return pccl_no_memory("a plan's messages");
  }
  memcpy(received, next, (plan->connections + 1) * sizeof *received);
  for (size_t t = 0; t < plan->tbs; t++) {
    for (int32_t s = 0; s < plan->tb[t].steps; s++) {
      int32_t index = plan->tb[t].step + s;
      const polyccl_step *step = &plan->step[index];
      if (step->send >= 0) {
        table->send[next[step->send]++] = index;
      }
      if (step->recv >= 0 && received[step->recv] < messages) {
        table->recv[received[step->recv]++] = index;
      }
    }
  }
  free(received);
  return POLYCCL_SUCCESS;
}

static int log2_up(uint64_t value) {
  int log2 = 0;
  while (((uint64_t)1 << log2) < value) {
    log2++;
  }
  return log2;
}

/* Rings and what slots hold must be alike on all ranks, so they follow from the whole plan: the largest step, the
 * busiest rank. */
static polyccl_result size_rings(const polyccl_plan *plan, int32_t fifo_depth, size_t buffer_bytes,
                                 pccl_loaded *loaded) {
  static const int defaults[POLYCCL_PROTOCOL_COUNT] = {
      [POLYCCL_SIMPLE] = SIMPLE_RING, [POLYCCL_LL] = LL_RING, [POLYCCL_LL128] = LL128_RING};
  size_t *incoming = pccl_zeroed((size_t)plan->ranks, sizeof *incoming);
  if (incoming == NULL) {
    return pccl_no_memory("a plan's connections");
  }
  loaded->largest = 1;
  size_t busiest = 1;
  for (size_t c = 0; c < plan->connections; c++) {
    size_t here = ++incoming[plan->connection[c].dst];
    if (plan->connection[c].channel > PCCL_MAX_PLAN_CHANNEL) {
      free(incoming);
      return pccl_fail(POLYCCL_ERROR_LIMIT, "plan \"%s\": channel %d is larger than %d", loaded->name,
                       plan->connection[c].channel, PCCL_MAX_PLAN_CHANNEL);
    }
    busiest = here > busiest ? here : busiest;
  }
  free(incoming);
  for (size_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].count > loaded->largest) {
      loaded->largest = plan->step[i].count;
    }
    loaded->lends = loaded->lends || plan->step[i].flags != 0;
  }
  int32_t wanted = plan->protocol == POLYCCL_SIMPLE ? MIN_DEPTH : MIN_LINE_DEPTH;
  int depth = log2_up((uint64_t)(fifo_depth > wanted ? fifo_depth : wanted));
  int max = log2_up(buffer_bytes / busiest + 1) - 1;
  int min = depth + log2_up((uint64_t)MIN_SLOT);
  int chunks = depth + log2_up((uint64_t)loaded->largest * 256);
  min = min > chunks ? min : chunks;
  int log2 = defaults[plan->protocol] < max ? defaults[plan->protocol] : max;
  log2 = log2 > min ? log2 : min;
  if (log2 > max) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "plan \"%s\": %zu connections into a rank, %d slots each, steps of up to %d chunks need "
                     "POLYCCL_BUFFER of at least %llu bytes (it is %zu)",
                     loaded->name, busiest, 1 << depth, (int)loaded->largest, (unsigned long long)busiest << log2,
                     buffer_bytes);
  }
  loaded->depth = 1u << depth;
  loaded->log2_ring = log2;
  return POLYCCL_SUCCESS;
}

/* Number of the connection among the rank's, added when it is new. */
static int32_t link_of(pccl_loaded *loaded, const polyccl_plan *plan, int32_t connection, int32_t *number) {
  if (connection < 0) {
    return -1;
  }
  if (number[connection] < 0) {
    const polyccl_connection *c = &plan->connection[connection];
    number[connection] = (int32_t)loaded->links;
    loaded->link[loaded->links++] = (pccl_link){c->src, c->dst, c->channel};
  }
  return number[connection];
}

static pccl_chunk_place place_or_none(bool present, uint8_t buffer, int32_t chunk) {
  return present ? (pccl_chunk_place){buffer, chunk} : (pccl_chunk_place){-1, 0};
}

/* Where a sending step's message still stands after it: its source, or what a fused step has stored. */
static pccl_chunk_place lent_place(const polyccl_step *step) {
  const pccl_op_traits *traits = &pccl_ops[step->op];
  return traits->writes_dst ? place_or_none(true, step->dst_buf, step->dst)
                            : place_or_none(traits->reads_src && !traits->receives, step->src_buf, step->src);
}

/* `sender` sends our message, `receiver` receives what we send; NULL where there is none. */
static void load_step(const polyccl_step *step, const polyccl_step *sender, const polyccl_step *receiver,
                      pccl_loaded *loaded, pccl_loaded_step *to) {
  const pccl_op_traits *traits = &pccl_ops[step->op];
  *to = (pccl_loaded_step){.op = step->op,
                           .flags = step->flags,
                           .count = step->count,
                           .src = place_or_none(traits->reads_src, step->src_buf, step->src),
                           .dst = place_or_none(traits->writes_dst, step->dst_buf, step->dst),
                           .remote_src = {-1, 0},
                           .remote_dst = {-1, 0}};
  if (sender != NULL && (sender->flags & POLYCCL_FLAG_GET) != 0) {
    to->remote_src = lent_place(sender);
  }
  to->remote_reduces = receiver != NULL && pccl_ops[receiver->op].reduces;
  if (receiver != NULL && (receiver->flags & POLYCCL_FLAG_PUT) != 0) {
    to->remote_dst = place_or_none(true, receiver->dst_buf, receiver->dst);
  }
  if (traits->reads_src) {
    loaded->uses[step->src_buf] = true;
  }
  if (traits->writes_dst) {
    loaded->uses[step->dst_buf] = true;
  }
}

static polyccl_result allocate(const polyccl_plan *plan, int rank, pccl_loaded *loaded) {
  const polyccl_plan_rank *here = &plan->rank[rank];
  size_t steps = 0, waits = 0;
  for (int32_t t = here->tb; t < here->tb + here->tbs; t++) {
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
      waits += (size_t)plan->step[s].waits;
    }
    steps += (size_t)plan->tb[t].steps;
  }
  loaded->tb = pccl_array((size_t)here->tbs, sizeof *loaded->tb);
  loaded->step = pccl_array(steps, sizeof *loaded->step);
  loaded->wait = pccl_array(waits, sizeof *loaded->wait);
  loaded->link = pccl_array(2 * steps, sizeof *loaded->link);
  return loaded->tb != NULL && loaded->step != NULL && loaded->wait != NULL && loaded->link != NULL
             ? POLYCCL_SUCCESS
             : pccl_no_memory("a loaded plan");
}

static polyccl_result load_rank(const polyccl_plan *plan, int rank, pccl_loaded *loaded) {
  PCCL_TRY(allocate(plan, rank, loaded));
  int32_t *number = pccl_array(plan->connections + 1, sizeof *number);
  size_t *taken = pccl_zeroed(plan->connections + 1, sizeof *taken); /* messages of the rank's side so far */
  if (number == NULL || taken == NULL) {
    free(number);
    free(taken);
    return pccl_no_memory("a loaded plan");
  }
  memset(number, -1, (plan->connections + 1) * sizeof *number);
  message_table messages = {0};
  polyccl_result result = list_messages(plan, &messages);
  const polyccl_plan_rank *here = &plan->rank[rank];
  for (int32_t t = here->tb; result == POLYCCL_SUCCESS && t < here->tb + here->tbs; t++) {
    loaded->tb[loaded->tbs].step = loaded->steps;
    loaded->tb[loaded->tbs++].steps = (uint32_t)plan->tb[t].steps;
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
      const polyccl_step *step = &plan->step[s];
      pccl_loaded_step *to = &loaded->step[loaded->steps++];
      load_step(step,
                step->recv >= 0 ? &plan->step[messages.send[messages.first[step->recv] + taken[step->recv]]] : NULL,
                step->send >= 0 ? &plan->step[messages.recv[messages.first[step->send] + taken[step->send]]] : NULL,
                loaded, to);
      (void)(step->recv >= 0 && taken[step->recv]++);
      (void)(step->send >= 0 && taken[step->send]++);
      to->recv = link_of(loaded, plan, step->recv, number);
      to->send = link_of(loaded, plan, step->send, number);
      to->wait = (int32_t)loaded->waits;
      to->waits = step->waits;
      for (int32_t w = 0; w < step->waits; w++) {
        loaded->wait[loaded->waits++] = plan->wait[step->wait + w];
      }
    }
  }
  free(number);
  free(taken);
  free_messages(&messages);
  return result;
}

/* What averages need to know; the numbers of this rank's steps are kept. */
static polyccl_result load_addends(const polyccl_plan *plan, int rank, pccl_loaded *loaded) {
  bool averages = plan->redops == 0 || (plan->redops >> POLYCCL_AVG & 1) != 0;
  if (!loaded->reduces || plan->collective == POLYCCL_CUSTOM || !averages) {
    return POLYCCL_SUCCESS;
  }
  size_t chunks = 0, number = 0;
  for (uint32_t s = 0; s < loaded->steps; s++) {
    chunks += pccl_ops[loaded->step[s].op].reduces ? (size_t)loaded->step[s].count : 0;
  }
  loaded->addends = pccl_array(chunks, sizeof *loaded->addends);
  if (loaded->addends == NULL) {
    return pccl_no_memory("a loaded plan");
  }
  pccl_contributions all;
  PCCL_TRY(pccl_contributions_find(plan, &all));
  pccl_loaded_step *to = loaded->step;
  const polyccl_plan_rank *here = &plan->rank[rank];
  for (int32_t t = here->tb; t < here->tb + here->tbs; t++) {
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++, to++) {
      to->addends = number;
      for (size_t k = all.first[s]; k < all.first[s + 1]; k++) {
        loaded->addends[number++] = PCCL_K_ADDENDS(all.a[k], all.b[k], pccl_contributions_complete(plan, &all, k));
      }
    }
  }
  loaded->uniform = all.uniform;
  loaded->averages = true;
  pccl_contributions_free(&all);
  return POLYCCL_SUCCESS;
}

pccl_loaded *pccl_loaded_keep(pccl_loaded *loaded) {
  atomic_fetch_add_explicit(&loaded->references, 1, memory_order_relaxed);
  return loaded;
}

void pccl_loaded_release(pccl_loaded *loaded) {
  if (loaded != NULL && atomic_fetch_sub_explicit(&loaded->references, 1, memory_order_acq_rel) == 1) {
    pccl_generated_free(loaded->generated);
    free(loaded->name);
    free(loaded->tb);
    free(loaded->step);
    free(loaded->wait);
    free(loaded->link);
    free(loaded->addends);
    free(loaded);
  }
}

/* The plan with marks that hold for its ranks' placements; it shares all but its steps. */
static polyccl_plan alias_plan(const polyccl_plan *plan, const pccl_alias *alias) {
  polyccl_plan aliased = *plan;
  aliased.step = alias->safe ? alias->step : plan->step;
  return aliased;
}

static polyccl_result load_parts(const polyccl_plan *plan, int rank, int32_t fifo_depth, size_t buffer_bytes,
                                 pccl_loaded *loaded) {
  pccl_alias alias;
  PCCL_TRY(pccl_alias_find(plan, &alias));
  polyccl_plan aliased = alias_plan(plan, &alias);
  loaded->alias_safe = alias.safe;
  polyccl_result result = size_rings(&aliased, fifo_depth, buffer_bytes, loaded);
  if (result == POLYCCL_SUCCESS) {
    result = load_rank(&aliased, rank, loaded);
  }
  pccl_alias_free(&alias);
  return result == POLYCCL_SUCCESS ? load_addends(plan, rank, loaded) : result;
}

polyccl_result pccl_load(const polyccl_plan *plan, int ranks, int rank, size_t buffer_bytes, pccl_loaded **loaded) {
  if (plan->ranks != ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "plan \"%s\" is for %d ranks, the communicator has %d",
                     plan->name != NULL ? plan->name : "", plan->ranks, ranks);
  }
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(plan, &report));
  pccl_loaded *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL || (made->name = pccl_strdup(plan->name != NULL ? plan->name : "unnamed")) == NULL) {
    free(made);
    return pccl_no_memory("a loaded plan");
  }
  atomic_init(&made->references, 1);
  made->id = -1;
  made->fingerprint = polyccl_plan_fingerprint(plan);
  made->spec = pccl_plan_spec(plan);
  made->protocol = plan->protocol;
  made->order = plan->order;
  made->min_bytes = plan->min_bytes;
  made->max_bytes = plan->max_bytes;
  made->redops = plan->redops;
  made->uneven = report.uneven;
  made->reduces = pccl_collective_reduces(plan->collective);
  made->chunks[POLYCCL_BUF_INPUT] = plan->rank[rank].input;
  made->chunks[POLYCCL_BUF_OUTPUT] = plan->rank[rank].output;
  made->chunks[POLYCCL_BUF_SCRATCH] = plan->rank[rank].scratch;
  polyccl_result result = load_parts(plan, rank, report.fifo_depth, buffer_bytes, made);
  if (result != POLYCCL_SUCCESS) {
    pccl_loaded_release(made);
    return result;
  }
  *loaded = made;
  return POLYCCL_SUCCESS;
}
