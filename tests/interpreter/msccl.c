#include "msccl.h"

#include <stdlib.h>
#include <string.h>

#include "msccl_model.h"

enum { COUNT = 72, CHAIN = 16, PEERS = 32, AWAITED = 128 };

const msccl_runtime msccl_microsoft = {.name = "microsoft/msccl",
                                       .max_tbs = 216,
                                       .max_steps = 256,
                                       .max_nodes = 4096,
                                       .max_channels = 32,
                                       .depth = {2, 8, 8},
                                       .fused = true,
                                       .has_custom = true};
const msccl_runtime msccl_azure = {.name = "Azure",
                                   .max_tbs = 1024,
                                   .max_steps = 64,
                                   .max_nodes = 4096,
                                   .max_channels = 32,
                                   .depth = {2, 8, 8},
                                   .placement = true,
                                   .fused = true};
const msccl_runtime msccl_rccl = {.name = "RCCL",
                                  .max_tbs = 64,
                                  .max_steps = 64,
                                  .max_nodes = 4096,
                                  .max_channels = 64,
                                  .depth = {2, 8, 8},
                                  .placement = true,
                                  .has_gather = true};

static bool text_of(loader *l, const msccl_tag *t, const char *key, const char **value) {
  return msccl_tag_text(&l->cursor, t, key, value);
}

static bool number_of(loader *l, const msccl_tag *t, const char *key, int *value) {
  return msccl_tag_number(&l->cursor, t, key, value);
}

/* ---- <algo>, <gpu>, <tb> ---- */

static bool read_collective(loader *l, const char *name) {
  static const struct {
    const char *name;
    polyccl_collective collective;
    bool microsoft, others; /* who knows this name */
    bool in, out, all;      /* times ranks: what microsoft/msccl compares the buffers with; the count of a call */
  } known[] = {
      {"allreduce", POLYCCL_ALLREDUCE, true, true, false, false, false},
      {"allgather", POLYCCL_ALLGATHER, true, true, true, false, true},
      {"reduce_scatter", POLYCCL_REDUCE_SCATTER, true, false, false, true, true},
      {"reducescatter", POLYCCL_REDUCE_SCATTER, false, true, false, true, true},
      {"alltoall", POLYCCL_ALLTOALL, true, true, false, false, true},
      {"broadcast", POLYCCL_BROADCAST, true, true, false, false, false},
      {"reduce", POLYCCL_REDUCE, true, true, false, false, false},
      {"custom", POLYCCL_CUSTOM, true, false, false, false, false},
      {"gather", POLYCCL_GATHER, false, true, false, false, false},
      {"scatter", POLYCCL_SCATTER, false, true, false, false, false},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    bool knows = l->runtime->has_custom ? known[i].microsoft : known[i].others;
    if (strcmp(known[i].name, name) == 0 && knows) {
      bool rooted = known[i].collective == POLYCCL_GATHER || known[i].collective == POLYCCL_SCATTER;
      l->head.collective = known[i].collective;
      l->in_times = known[i].in ? l->ranks : 1;
      l->out_times = known[i].out ? l->ranks : 1;
      l->times = known[i].all ? l->ranks : 1;
      return !rooted || l->runtime->has_gather || refuse(l, "no call of it is a %s", name);
    }
  }
  return refuse(l, "unknown collective %s", name);
}

static bool read_algo(loader *l, const msccl_tag *t) {
  static const char *const protocols[] = {"Simple", "LL", "LL128"};
  const char *protocol, *collective;
  int placed, elsewhere = 0, bytes;
  if (!number_of(l, t, "nchunksperloop", &l->per_loop) || !number_of(l, t, "nchannels", &l->channels) ||
      !number_of(l, t, "ngpus", &l->ranks) || !text_of(l, t, "proto", &protocol) ||
      !text_of(l, t, "coll", &collective) || !number_of(l, t, "inplace", &placed)) {
    return false;
  }
  if (l->runtime->placement && (!number_of(l, t, "minBytes", &bytes) || !number_of(l, t, "maxBytes", &bytes) ||
                                !number_of(l, t, "outofplace", &elsewhere))) {
    return false;
  }
  if (l->runtime->placement && (elsewhere != 0) == (placed != 0)) {
    return refuse(l, "inplace=\"%d\" outofplace=\"%d\"", placed, elsewhere);
  }
  l->head.inplace = placed != 0;
  l->head.protocol = POLYCCL_PROTOCOL_COUNT;
  for (int i = 0; i < POLYCCL_PROTOCOL_COUNT; i++) {
    l->head.protocol = strcmp(protocols[i], protocol) == 0 ? (polyccl_protocol)i : l->head.protocol;
  }
  if (l->head.protocol == POLYCCL_PROTOCOL_COUNT) {
    return refuse(l, "unknown protocol %s", protocol);
  }
  if (!read_collective(l, collective)) {
    return false;
  }
  if (l->per_loop < 1 || l->per_loop % l->times != 0) {
    return refuse(l, "a block of the call is not a whole number of its %d / %d chunks", l->per_loop, l->times);
  }
  l->head.chunks = l->head.chunks_out = l->per_loop / l->times;
  return true;
}

static bool read_gpu(loader *l, const msccl_tag *t) {
  if (!number_of(l, t, "i_chunks", &l->inputs) || !number_of(l, t, "o_chunks", &l->outputs) ||
      !number_of(l, t, "s_chunks", &l->scratch)) {
    return false;
  }
  bool consistent = (l->inputs <= 0 || l->inputs * l->in_times == l->per_loop) &&
                    (l->outputs <= 0 || l->outputs * l->out_times == l->per_loop);
  return !l->runtime->has_custom || consistent || refuse(l, "i_chunks and o_chunks do not fit nchunksperloop");
}

static bool read_block(loader *l, const msccl_tag *t, block **made) {
  int id, send, recv, channel;
  if (!number_of(l, t, "id", &id) || !number_of(l, t, "recv", &recv) || !number_of(l, t, "send", &send) ||
      !number_of(l, t, "chan", &channel)) {
    return false;
  }
  if (id < 0 || id >= l->runtime->max_tbs || l->block[id].exists) {
    return refuse(l, "thread block %d is one too many", id);
  }
  if (send == l->rank || recv == l->rank || send < -1 || recv < -1 || send >= l->ranks || recv >= l->ranks ||
      channel < 0 || channel >= l->runtime->max_channels || channel >= l->channels) {
    return refuse(l, "thread block %d: send %d, recv %d, chan %d", id, send, recv, channel);
  }
  *made = &l->block[id];
  **made = (block){true, send, recv, channel, (int)l->transfer.len, 0};
  l->blocks = id >= l->blocks ? id + 1 : l->blocks;
  return true;
}

/* ---- <step> ---- */

typedef struct reading { /* of a thread block */
  block *block;
  int first_wait; /* of the next transfer */
  int chain_buf, chain_off, chain_from;
  int reductions; /* so far; the 16th ends a chain, however long */
} reading;

static int letter(const char *text) {
  const char *found = text[0] != '\0' && text[1] == '\0' ? strchr("ios", text[0]) : NULL;
  return found != NULL ? (int)(found - "ios") : -1;
}

static bool op_of(loader *l, const char *type, int *op) {
  static const char *const types[POLYCCL_STEP_OP_COUNT] = {"nop", "s", "r", "rcs", "rrc", "rrcs", "rrs", "cpy", "re"};
  for (int i = 0; i < POLYCCL_STEP_OP_COUNT; i++) {
    if (strcmp(types[i], type) == 0) {
      bool fused = i == POLYCCL_STEP_RCS || i == POLYCCL_STEP_RRC || i == POLYCCL_STEP_RRCS || i == POLYCCL_STEP_RRS;
      *op = i;
      return !fused || l->runtime->fused || refuse(l, "%s is refused at the first call", type);
    }
  }
  return refuse(l, "unknown step %s", type);
}

static bool check_place(loader *l, int buffer, int offset) {
  int size = buffer == 0 ? l->inputs : buffer == 1 ? l->outputs : l->scratch;
  return (offset >= -1 && offset < size) || refuse(l, "chunk %d of a buffer of %d", offset, size);
}

static bool check_peers(loader *l, const block *b, int op) {
  bool sends = op == POLYCCL_STEP_SEND || op == POLYCCL_STEP_RCS || op == POLYCCL_STEP_RRCS || op == POLYCCL_STEP_RRS;
  bool receives = op == POLYCCL_STEP_RECV || op == POLYCCL_STEP_RCS || op == POLYCCL_STEP_RRC ||
                  op == POLYCCL_STEP_RRCS || op == POLYCCL_STEP_RRS;
  if ((sends && b->send < 0) || (receives && b->recv < 0)) {
    return refuse(l, "a message without a peer");
  }
  return ((!sends || l->senders[b->channel] < PEERS) && (!receives || l->receivers[b->channel] < PEERS)) ||
         refuse(l, "too many peers on channel %d", b->channel);
}

static bool keep(loader *l, reading *r, transfer made, bool announces) {
  bool continues = made.op == POLYCCL_STEP_REDUCE && r->chain_buf == made.dst_buf && r->chain_off == made.dst &&
                   r->chain_from == made.src_buf && made.waits == 0;
  made.announces = announces;
  if (continues) { /* the same transfer, with the last one's count; waits of nops before it go to the next */
    transfer *old = &l->transfer.data[l->transfer.len - 1];
    if (made.src_buf == made.dst_buf && made.src == made.dst) {
      return refuse(l, "a chain adds its destination, which it has not stored yet");
    }
    made.wait = old->wait;
    made.waits = old->waits;
    made.reduction = old->reduction;
    made.reductions = old->reductions + 1;
    *old = made;
  } else {
    made.wait = r->first_wait;
    int all = (int)l->wait.len - r->first_wait;
    if (all > 0 && made.waits == 0) {
      return refuse(l, "waits of nops before a step that has none of its own");
    }
    made.waits = all;
    made.reduction = (int)l->source.len;
    made.reductions = made.op == POLYCCL_STEP_REDUCE;
    r->first_wait = (int)l->wait.len;
    r->block->transfers++;
    if (!pccl_vec_push(&l->transfer, made)) {
      return refuse(l, "no memory");
    }
  }
  r->chain_buf = -1;
  if (made.op == POLYCCL_STEP_REDUCE) {
    if (made.reductions > CHAIN) {
      return refuse(l, "a chain of %d reductions", made.reductions);
    }
    if (++r->reductions != CHAIN && !announces) {
      r->chain_buf = made.dst_buf;
      r->chain_off = made.dst;
      r->chain_from = made.src_buf;
    }
    return pccl_vec_push(&l->source, made.src) || refuse(l, "no memory");
  }
  return true;
}

static bool read_step(loader *l, reading *r, const msccl_tag *t) {
  int s, has, tb, on, op = POLYCCL_STEP_NOP;
  transfer made = {0};
  const char *from, *to, *type;
  if (!number_of(l, t, "s", &s) || !number_of(l, t, "srcoff", &made.src) || !text_of(l, t, "srcbuf", &from) ||
      !number_of(l, t, "dstoff", &made.dst) || !text_of(l, t, "dstbuf", &to) || !number_of(l, t, "cnt", &made.count) ||
      !text_of(l, t, "type", &type) || !number_of(l, t, "depid", &tb) || !number_of(l, t, "deps", &on) ||
      !number_of(l, t, "hasdep", &has)) {
    return false;
  }
  made.src_buf = letter(from);
  made.dst_buf = letter(to);
  if (s < 0 || s >= l->runtime->max_steps || made.src_buf < 0 || made.dst_buf < 0 || has < 0 || has > 1 ||
      !op_of(l, type, &op)) {
    return l->cursor.why[0] != '\0' ? false : refuse(l, "step %d of type %s", s, type);
  }
  if (tb >= AWAITED) {
    return refuse(l, "thread block %d cannot be waited for", tb);
  }
  if (tb >= 0 && !pccl_vec_push(&l->wait, (polyccl_wait){tb, on})) {
    return refuse(l, "no memory");
  }
  if (op == POLYCCL_STEP_NOP) {
    return true;
  }
  made.op = op;
  made.waits = tb >= 0;
  bool reads = op != POLYCCL_STEP_RECV && op != POLYCCL_STEP_RCS && op != POLYCCL_STEP_RRC;
  bool writes = op != POLYCCL_STEP_SEND && op != POLYCCL_STEP_RRS && op != POLYCCL_STEP_RRC;
  if (made.count < 1 || made.count >= COUNT) {
    return refuse(l, "count %d", made.count);
  }
  return (!reads || check_place(l, made.src_buf, made.src)) && (!writes || check_place(l, made.dst_buf, made.dst)) &&
         check_peers(l, r->block, op) && keep(l, r, made, has == 1);
}

/* ---- the file, as one rank reads it ---- */

typedef struct place {
  int nodes, depth, mine; /* stored; open elements; the depth of this rank's <gpu>, or 0 */
  reading r;
} place;

static bool open_tag(loader *l, const msccl_tag *t, place *at) {
  int id;
  at->depth += t->single ? 0 : 1;
  if (strcmp(t->name, "algo") == 0 && at->depth == 1) {
    at->nodes++;
    return read_algo(l, t);
  }
  if (strcmp(t->name, "gpu") == 0) {
    at->nodes++;
    bool ok = number_of(l, t, "id", &id) && (id != l->rank || read_gpu(l, t));
    at->mine = ok && id == l->rank ? at->depth : at->mine;
    return ok;
  }
  if (strcmp(t->name, "tb") == 0 && at->mine > 0) {
    at->nodes++;
    at->r = (reading){.first_wait = (int)l->wait.len, .chain_buf = -1};
    return read_block(l, t, &at->r.block);
  }
  if (strcmp(t->name, "step") == 0 && at->mine > 0 && at->r.block != NULL) {
    at->nodes++;
    return read_step(l, &at->r, t);
  }
  return true;
}

static void close_tag(loader *l, const msccl_tag *t, place *at) {
  if (strcmp(t->name, "tb") == 0 && at->mine > 0 && at->r.block != NULL) {
    l->senders[at->r.block->channel] += at->r.block->send >= 0;
    l->receivers[at->r.block->channel] += at->r.block->recv >= 0;
    at->r.block = NULL;
  }
  at->mine = at->depth == at->mine ? 0 : at->mine;
  at->depth--;
}

static bool read_file(loader *l, const char *text) {
  msccl_tag t;
  place at = {0};
  bool there = true;
  l->cursor.at = text;
  l->cursor.rank = l->rank;
  while (there) {
    if (at.nodes == l->runtime->max_nodes) {
      return refuse(l, "more nodes of XML than it stores");
    }
    if (!msccl_next_tag(&l->cursor, &t, &there)) {
      return false;
    }
    if (there && t.closes) {
      close_tag(l, &t, &at);
    } else if (there && !open_tag(l, &t, &at)) {
      return false;
    }
  }
  if (at.depth != 0) {
    return refuse(l, "the file ends too early");
  }
  if (l->blocks == 0) {
    return refuse(l, "a launch of no thread block");
  }
  for (int i = 0; i < l->blocks; i++) {
    if (!l->block[i].exists) {
      return refuse(l, "thread block %d is missing", i);
    }
  }
  return true;
}

static bool load_rank(loader *l, const char *text) {
  memset(l->block, 0, (size_t)l->runtime->max_tbs * sizeof *l->block);
  memset(l->senders, 0, sizeof l->senders);
  memset(l->receivers, 0, sizeof l->receivers);
  l->blocks = 0;
  l->transfer.len = l->wait.len = l->source.len = 0;
  return read_file(l, text) && msccl_add_rank(l);
}

bool msccl_load(const msccl_runtime *runtime, const char *text, const polyccl_plan *meant, bool single,
                polyccl_plan **plan, char *why, size_t size) {
  loader l = {
      .runtime = runtime, .single = single, .ranks = 1, .cursor = {.name = runtime->name, .why = why, .size = size}};
  why[0] = '\0';
  *plan = NULL;
  l.block = calloc((size_t)runtime->max_tbs, sizeof *l.block);
  bool loaded = l.block != NULL;
  for (; loaded && l.rank < l.ranks; l.rank++) {
    loaded = load_rank(&l, text);
  }
  if (loaded) {
    *plan = msccl_make_plan(&l, meant);
  }
  free(l.block);
  free(l.transfer.data);
  free(l.wait.data);
  free(l.source.data);
  free(l.plan_rank.data);
  free(l.tb.data);
  free(l.step.data);
  free(l.plan_wait.data);
  free(l.connection.data);
  return *plan != NULL;
}
