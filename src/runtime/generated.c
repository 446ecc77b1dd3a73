#include "runtime/generated.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/codegen.h>

#include "base/error.h"
#include "runtime/wait.h"

void pccl_generated_free(pccl_generated_code *code) {
  if (code == NULL) {
    return;
  }
  if (code->library != NULL) {
    dlclose(code->library);
  }
  free(code->send);
  free(code->recv);
  free(code->k_send);
  free(code->k_recv);
  free(code->block);
  free(code);
}

static polyccl_result open_library(pccl_generated_code *code, const polyccl_plan *plan, int rank, const char *path) {
  char local[4096]; /* without a slash dlopen() would search the system */
  snprintf(local, sizeof local, "%s%s", strchr(path, '/') == NULL ? "./" : "", path);
  code->library = dlopen(local, RTLD_NOW | RTLD_LOCAL);
  if (code->library == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: cannot load: %s", path, dlerror());
  }
  const pccl_k_generated *generated = dlsym(code->library, "pccl_generated");
  if (generated == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: not made by polyccl build", path);
  }
  if (generated->version != PCCL_K_VERSION || generated->call_bytes != sizeof(pccl_k_call)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: made by another version of polyccl build; build it again", path);
  }
  if (generated->fingerprint != polyccl_plan_fingerprint(plan)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: made from another plan than \"%s\"; build it again", path, plan->name);
  }
  code->function = generated->rank[rank];
  return POLYCCL_SUCCESS;
}

/* As the generator numbers them: by the plan's connections. */
static polyccl_result open_ends(polyccl_comm *comm, const polyccl_plan *plan, const pccl_loaded *loaded,
                                pccl_generated_code *code) {
  for (size_t i = 0; i < plan->connections; i++) {
    const polyccl_connection *c = &plan->connection[i];
    if (c->src == comm->rank) {
      PCCL_TRY(pccl_comm_end(comm, c->src, c->dst, c->channel, loaded->protocol, loaded->log2_ring, true,
                             &code->send[code->sends]));
      code->sends++;
    }
    if (c->dst == comm->rank) {
      PCCL_TRY(pccl_comm_end(comm, c->src, c->dst, c->channel, loaded->protocol, loaded->log2_ring, false,
                             &code->recv[code->receives]));
      code->receives++;
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_generated_attach(polyccl_comm *comm, const polyccl_plan *plan, const char *path,
                                     pccl_loaded *loaded) {
  pccl_generated_code *code = pccl_zeroed(1, sizeof *code);
  if (code == NULL) {
    return pccl_no_memory("generated code");
  }
  code->send = pccl_zeroed(plan->connections, sizeof(pccl_end *));
  code->recv = pccl_zeroed(plan->connections, sizeof(pccl_end *));
  code->k_send = pccl_zeroed(plan->connections, sizeof *code->k_send);
  code->k_recv = pccl_zeroed(plan->connections, sizeof *code->k_recv);
  code->block = pccl_zeroed(loaded->tbs, sizeof *code->block);
  polyccl_result result =
      code->send != NULL && code->recv != NULL && code->k_send != NULL && code->k_recv != NULL && code->block != NULL
          ? open_library(code, plan, comm->rank, path)
          : pccl_no_memory("generated code");
  if (result == POLYCCL_SUCCESS) {
    result = open_ends(comm, plan, loaded, code);
  }
  if (result != POLYCCL_SUCCESS) {
    pccl_generated_free(code);
    return result;
  }
  loaded->generated = code;
  loaded->references = false; /* generated code sends by slots only */
  return POLYCCL_SUCCESS;
}

static void lend_end(pccl_k_end *to, const pccl_end *from) {
  /* The counters are C11 atomics of the same size and representation as the plain words that generated code loads and
   * stores atomically. */
  *to = (pccl_k_end){.tail = (uint64_t *)(void *)&from->ring->tail,
                     .head = (uint64_t *)(void *)&from->ring->head,
                     .slots = from->ring->slots,
                     .count = from->count,
                     .cached = from->cached};
}

void pccl_generated_begin(pccl_generated_code *code, const pccl_prepared *p, char *const *buffers) {
  const pccl_loaded *plan = p->plan;
  code->call = (pccl_k_call){.buffer = {buffers[0], buffers[1], buffers[2]},
                             .count = p->count,
                             .stride = p->stride,
                             .tile = p->tile,
                             .batches = p->batches,
                             .slot_bytes = p->slot_bytes,
                             .depth = p->depth,
                             .element = (uint32_t)p->arithmetic.element,
                             .chunks = (uint32_t)plan->spec.chunks,
                             .dtype = (uint32_t)p->dtype,
                             .redop = (uint32_t)p->op,
                             .reduce = p->arithmetic.reduce,
                             .recv = code->k_recv,
                             .send = code->k_send,
                             .block = code->block};
  code->open = false;
  memset(code->block, 0, plan->tbs * sizeof *code->block);
}

/* The rings may still carry messages of another geometry. */
static bool open_rings(pccl_generated_code *code, const pccl_prepared *p) {
  for (uint32_t i = 0; i < code->sends; i++) {
    if (!pccl_end_ready(p->plan->protocol, p, code->send[i])) {
      return false;
    }
  }
  for (uint32_t i = 0; i < code->sends; i++) {
    lend_end(&code->k_send[i], code->send[i]);
  }
  for (uint32_t i = 0; i < code->receives; i++) {
    lend_end(&code->k_recv[i], code->recv[i]);
  }
  code->open = true;
  return true;
}

static void settle(polyccl_comm *comm, pccl_end *end, const pccl_k_end *k) {
  bool moved = end->count != k->count;
  end->count = k->count;
  end->cached = k->cached;
  if (moved) {
    pccl_notify(comm, end->peer_cell);
  }
}

bool pccl_generated_round(polyccl_comm *comm, pccl_generated_code *code, const pccl_prepared *p, uint32_t *running) {
  if (!code->open && !open_rings(code, p)) {
    return false;
  }
  bool moved = false;
  *running = 0;
  for (uint32_t t = 0; t < p->plan->tbs; t++) {
    pccl_k_block *block = &code->block[t];
    if (!block->ended) {
      moved = code->function[t](&code->call, block) != 0 || moved;
      *running += !block->ended;
    }
    p->state[t].step = block->at > 0 ? block->at - 1 : 0;
    p->state[t].batch = block->batch;
    p->state[t].done = block->done;
    p->state[t].ended = block->ended != 0;
  }
  for (uint32_t i = 0; moved && i < code->sends; i++) {
    settle(comm, code->send[i], &code->k_send[i]);
  }
  for (uint32_t i = 0; moved && i < code->receives; i++) {
    settle(comm, code->recv[i], &code->k_recv[i]);
  }
  return moved;
}
