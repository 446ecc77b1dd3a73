/* Plan -> its image: the parts of all ranks, in one pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/codegen.h>

#include "base/error.h"
#include "base/map.h"
#include "base/vec.h"
#include "executor/image_find.h"
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
                                 pccl_image_head *head) {
  static const int defaults[POLYCCL_PROTOCOL_COUNT] = {
      [POLYCCL_SIMPLE] = SIMPLE_RING, [POLYCCL_LL] = LL_RING, [POLYCCL_LL128] = LL128_RING};
  size_t *incoming = pccl_zeroed((size_t)plan->ranks, sizeof *incoming);
  if (incoming == NULL) {
    return pccl_no_memory("a plan's connections");
  }
  head->largest = 1;
  size_t busiest = 1;
  for (size_t c = 0; c < plan->connections; c++) {
    size_t here = ++incoming[plan->connection[c].dst];
    if (plan->connection[c].channel > PCCL_MAX_PLAN_CHANNEL) {
      free(incoming);
      return pccl_fail(POLYCCL_ERROR_LIMIT, "plan \"%s\": channel %d is larger than %d", head->text,
                       plan->connection[c].channel, PCCL_MAX_PLAN_CHANNEL);
    }
    busiest = here > busiest ? here : busiest;
  }
  free(incoming);
  for (size_t i = 0; i < plan->steps; i++) {
    if (plan->step[i].count > head->largest) {
      head->largest = plan->step[i].count;
    }
    head->lends |= plan->step[i].flags != 0;
  }
  int32_t wanted = plan->protocol == POLYCCL_SIMPLE ? MIN_DEPTH : MIN_LINE_DEPTH;
  int depth = log2_up((uint64_t)(fifo_depth > wanted ? fifo_depth : wanted));
  int max = log2_up(buffer_bytes / busiest + 1) - 1;
  int min = depth + log2_up((uint64_t)MIN_SLOT);
  int chunks = depth + log2_up((uint64_t)head->largest * 256);
  min = min > chunks ? min : chunks;
  int log2 = defaults[plan->protocol] < max ? defaults[plan->protocol] : max;
  log2 = log2 > min ? log2 : min;
  if (log2 > max) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "plan \"%s\": %zu connections into a rank, %d slots each, steps of up to %d chunks need "
                     "POLYCCL_BUFFER of at least %llu bytes (it is %zu)",
                     head->text, busiest, 1 << depth, (int)head->largest, (unsigned long long)busiest << log2,
                     buffer_bytes);
  }
  head->depth = 1u << depth;
  head->log2_ring = log2;
  return POLYCCL_SUCCESS;
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
                      pccl_image_rank *part, pccl_loaded_step *to) {
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
    part->uses[step->src_buf] = 1;
  }
  if (traits->writes_dst) {
    part->uses[step->dst_buf] = 1;
  }
}

/* What is used while an image is filled. A rank uses a connection on one side only. */
typedef struct filling {
  const polyccl_plan *plan;
  const pccl_contributions *sums; /* NULL: averages need to know nothing */
  message_table messages;
  struct filling_side {
    size_t *taken;   /* [connections] messages so far */
    int32_t *number; /* [connections] among the links of the rank on this side */
  } side[2];         /* sending, receiving */
  pccl_image_head *head;
  pccl_image_arrays to;
} filling;

/* Number of the connection among the rank's, added when it is new. */
static int32_t link_of(filling *f, pccl_image_rank *part, bool receives, int32_t connection) {
  if (connection < 0) {
    return -1;
  }
  int32_t *number = &f->side[receives].number[connection];
  if (*number < 0) {
    const polyccl_connection *c = &f->plan->connection[connection];
    *number = (int32_t)part->links;
    f->to.link[part->link + part->links++] = (pccl_link){c->src, c->dst, c->channel};
  }
  return *number;
}

/* The step at the other end of the message that `connection` brings or takes next. */
static const polyccl_step *next_at_other_end(filling *f, bool receives, int32_t connection) {
  if (connection < 0) {
    return NULL;
  }
  const int32_t *other = receives ? f->messages.send : f->messages.recv;
  return &f->plan->step[other[f->messages.first[connection] + f->side[receives].taken[connection]++]];
}

static void fill_addends(filling *f, pccl_image_rank *part, int32_t step, pccl_loaded_step *to) {
  const pccl_contributions *sums = f->sums;
  to->addends = part->addends;
  for (size_t k = sums->first[step]; k < sums->first[step + 1]; k++) {
    f->to.addend[part->addend + part->addends++] =
        PCCL_K_ADDENDS(sums->a[k], sums->b[k], pccl_contributions_complete(f->plan, sums, k));
  }
}

static void fill_step(filling *f, pccl_image_rank *part, int32_t index) {
  const polyccl_step *step = &f->plan->step[index];
  pccl_loaded_step *to = &f->to.step[part->step + part->steps++];
  const polyccl_step *sender = next_at_other_end(f, true, step->recv);
  const polyccl_step *receiver = next_at_other_end(f, false, step->send);
  load_step(step, sender, receiver, part, to);
  to->recv = link_of(f, part, true, step->recv);
  to->send = link_of(f, part, false, step->send);
  to->wait = (int32_t)part->waits;
  to->waits = step->waits;
  for (int32_t w = 0; w < step->waits; w++) {
    f->to.wait[part->wait + part->waits++] = f->plan->wait[step->wait + w];
  }
  if (f->sums != NULL) {
    fill_addends(f, part, index, to);
  }
}

static void fill_image(filling *f) {
  pccl_image_rank next = {0}; /* the first of each array that no rank has taken */
  for (int32_t r = 0; r < f->plan->ranks; r++) {
    const polyccl_plan_rank *here = &f->plan->rank[r];
    pccl_image_rank *part = &f->to.rank[r];
    *part = next;
    part->chunks[POLYCCL_BUF_INPUT] = here->input;
    part->chunks[POLYCCL_BUF_OUTPUT] = here->output;
    part->chunks[POLYCCL_BUF_SCRATCH] = here->scratch;
    for (int32_t t = here->tb; t < here->tb + here->tbs; t++) {
      const polyccl_thread_block *tb = &f->plan->tb[t];
      f->to.tb[part->tb + part->tbs++] = (pccl_loaded_tb){part->steps, (uint32_t)tb->steps};
      for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
        fill_step(f, part, s);
      }
    }
    next.tb += part->tbs;
    next.step += part->steps;
    next.wait += part->waits;
    next.link += part->links;
    next.addend += part->addends;
  }
}

/* Sets the sizes of the arrays. */
static void count_image(const polyccl_plan *plan, const pccl_contributions *sums, pccl_image_head *head) {
  for (size_t t = 0; t < plan->tbs; t++) {
    head->steps += (uint64_t)plan->tb[t].steps;
    for (int32_t s = plan->tb[t].step; s < plan->tb[t].step + plan->tb[t].steps; s++) {
      head->waits += (uint64_t)plan->step[s].waits;
    }
  }
  head->tbs = plan->tbs;
  head->links = 2 * (uint64_t)plan->connections;
  head->addends = sums != NULL ? sums->first[plan->steps] : 0;
}

static bool allocate_filling(filling *f) {
  for (int side = 0; side < 2; side++) {
    f->side[side].taken = pccl_zeroed(f->plan->connections + 1, sizeof *f->side[side].taken);
    f->side[side].number = pccl_array(f->plan->connections + 1, sizeof *f->side[side].number);
    if (f->side[side].taken == NULL || f->side[side].number == NULL) {
      return false;
    }
    memset(f->side[side].number, -1, (f->plan->connections + 1) * sizeof *f->side[side].number);
  }
  return true;
}

static void free_filling(filling *f) {
  for (int side = 0; side < 2; side++) {
    free(f->side[side].taken);
    free(f->side[side].number);
  }
  free_messages(&f->messages);
}

/* The block, with room for the arrays that `head` counts. */
static polyccl_result make_block(const polyccl_plan *plan, const pccl_contributions *sums, const pccl_image_head *head,
                                 pccl_image_head **block) {
  filling f = {.plan = plan, .sums = sums};
  size_t bytes = pccl_image_bytes(head);
  f.head = bytes > 0 ? pccl_zeroed(bytes, 1) : NULL;
  polyccl_result result =
      f.head != NULL && allocate_filling(&f) ? list_messages(plan, &f.messages) : pccl_no_memory("a loaded plan");
  if (result == POLYCCL_SUCCESS) {
    *f.head = *head;
    f.to = pccl_image_arrays_of(f.head);
    fill_image(&f);
    *block = f.head;
  } else {
    free(f.head);
  }
  free_filling(&f);
  return result;
}

static void describe_plan(const polyccl_plan *plan, const polyccl_verify_report *report, pccl_image_head *head) {
  snprintf(head->text, sizeof head->text, "%s", plan->name != NULL ? plan->name : "unnamed");
  head->fingerprint = polyccl_plan_fingerprint(plan);
  head->spec = pccl_plan_spec(plan);
  head->ranks = plan->ranks;
  head->protocol = (int32_t)plan->protocol;
  head->order = (int32_t)plan->order;
  head->min_bytes = plan->min_bytes;
  head->max_bytes = plan->max_bytes;
  head->redops = plan->redops;
  head->uneven = report->uneven;
  head->reduces = pccl_collective_reduces(plan->collective);
}

/* The plan with marks that hold for its ranks' placements; it shares all but its steps. */
static polyccl_plan alias_plan(const polyccl_plan *plan, const pccl_alias *alias) {
  polyccl_plan aliased = *plan;
  aliased.step = alias->safe ? alias->step : plan->step;
  return aliased;
}

polyccl_result pccl_image_make(const char *key, const polyccl_plan *plan, size_t buffer_bytes, pccl_image **image) {
  polyccl_verify_report report;
  PCCL_TRY(polyccl_plan_verify(plan, &report));
  pccl_image_head head;
  memset(&head, 0, sizeof head); /* padding is part of the checksum */
  describe_plan(plan, &report, &head);
  pccl_alias alias;
  PCCL_TRY(pccl_alias_find(plan, &alias));
  polyccl_plan aliased = alias_plan(plan, &alias);
  head.alias_safe = alias.safe;
  polyccl_result result = size_rings(&aliased, report.fifo_depth, buffer_bytes, &head);
  pccl_contributions sums;
  bool averages = head.reduces && plan->collective != POLYCCL_CUSTOM &&
                  (plan->redops == 0 || (plan->redops >> POLYCCL_AVG & 1) != 0);
  averages = averages && result == POLYCCL_SUCCESS;
  if (averages) {
    result = pccl_contributions_find(plan, &sums);
    averages = result == POLYCCL_SUCCESS;
  }
  if (averages) {
    head.averages = 1;
    head.uniform = sums.uniform;
  }
  count_image(plan, averages ? &sums : NULL, &head);
  pccl_image_head *block = NULL;
  if (result == POLYCCL_SUCCESS) {
    result = make_block(&aliased, averages ? &sums : NULL, &head, &block);
  }
  if (averages) {
    pccl_contributions_free(&sums);
  }
  pccl_alias_free(&alias);
  return result == POLYCCL_SUCCESS ? pccl_image_seal(block, key, image) : result;
}

/* ---- plans of the user ---- */

static uint64_t digest_array(uint64_t digest, const void *data, size_t count, size_t element) {
  return pccl_mix_bytes(pccl_mix64(digest ^ count), data, data != NULL ? count * element : 0);
}

/* Of everything in the plan but its name and source files. The plan may be wrong in any way. */
static uint64_t digest_plan(const polyccl_plan *plan, uint64_t digest) {
  const int64_t head[] = {plan->collective,
                          plan->ranks,
                          plan->chunks,
                          plan->chunks_out,
                          plan->inplace,
                          plan->root,
                          plan->peer,
                          plan->protocol,
                          plan->order,
                          plan->fifo_depth,
                          plan->redops,
                          (int64_t)plan->min_bytes,
                          (int64_t)plan->max_bytes};
  digest = digest_array(digest, head, sizeof head / sizeof *head, sizeof *head);
  digest = digest_array(digest, plan->rank, plan->ranks > 0 ? (size_t)plan->ranks : 0, sizeof *plan->rank);
  digest = digest_array(digest, plan->tb, plan->tbs, sizeof *plan->tb);
  digest = digest_array(digest, plan->step, plan->steps, sizeof *plan->step);
  digest = digest_array(digest, plan->wait, plan->waits, sizeof *plan->wait);
  digest = digest_array(digest, plan->connection, plan->connections, sizeof *plan->connection);
  digest = digest_array(digest, plan->post, plan->posts, sizeof *plan->post);
  digest = digest_array(digest, plan->leaf, plan->leaves, sizeof *plan->leaf);
  return digest_array(digest, plan->absent, plan->absents, sizeof *plan->absent);
}

typedef struct load_request {
  const polyccl_plan *plan;
  size_t buffer_bytes;
} load_request;

static polyccl_result make_users_image(void *context, const char *key, pccl_image **image) {
  const load_request *request = context;
  return pccl_image_make(key, request->plan, request->buffer_bytes, image);
}

polyccl_result pccl_load(const polyccl_plan *plan, pccl_member *member, size_t buffer_bytes, pccl_loaded **loaded) {
  const char *name = plan->name != NULL ? plan->name : "unnamed";
  if (plan->ranks != member->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "plan \"%s\" is for %d ranks, the communicator has %d", name, plan->ranks,
                     member->ranks);
  }
  char key[PCCL_IMAGE_KEY_BYTES];
  snprintf(key, sizeof key, "plan-%016llx%016llx-buffer%zu", (unsigned long long)digest_plan(plan, 1),
           (unsigned long long)digest_plan(plan, 2), buffer_bytes);
  load_request request = {plan, buffer_bytes};
  pccl_image *image;
  PCCL_TRY(pccl_image_find(member, key, make_users_image, &request, &image));
  pccl_loaded *made;
  polyccl_result result = pccl_image_part(image, member->rank, &made);
  pccl_image_release(image);
  PCCL_TRY(result);
  char *own_name = pccl_strdup(name); /* the image has that of whoever came first */
  if (own_name == NULL) {
    pccl_loaded_release(made);
    return pccl_no_memory("a loaded plan");
  }
  free(made->name);
  made->name = own_name;
  *loaded = made;
  return POLYCCL_SUCCESS;
}
