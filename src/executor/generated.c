#include "executor/generated.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/codegen.h>

#include "base/error.h"

void pccl_generated_free(pccl_generated_code *code) {
  if (code == NULL) {
    return;
  }
  if (code->library != NULL) {
    dlclose(code->library);
  }
  free(code->send);
  free(code->recv);
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
static void list_links(const polyccl_plan *plan, int rank, pccl_generated_code *code) {
  for (size_t i = 0; i < plan->connections; i++) {
    const polyccl_connection *c = &plan->connection[i];
    pccl_link link = {c->src, c->dst, c->channel};
    if (c->src == rank) {
      code->send[code->sends++] = link;
    }
    if (c->dst == rank) {
      code->recv[code->receives++] = link;
    }
  }
}

polyccl_result pccl_generated_attach(const polyccl_plan *plan, int rank, const char *path, pccl_loaded *loaded) {
  pccl_generated_code *code = pccl_zeroed(1, sizeof *code);
  if (code == NULL) {
    return pccl_no_memory("generated code");
  }
  code->send = pccl_zeroed(plan->connections, sizeof *code->send);
  code->recv = pccl_zeroed(plan->connections, sizeof *code->recv);
  polyccl_result result = code->send != NULL && code->recv != NULL ? open_library(code, plan, rank, path)
                                                                   : pccl_no_memory("generated code");
  if (result != POLYCCL_SUCCESS) {
    pccl_generated_free(code);
    return result;
  }
  list_links(plan, rank, code);
  loaded->generated = code;
  loaded->lends = false; /* generated code sends by slots only */
  return POLYCCL_SUCCESS;
}

void pccl_generated_run_free(pccl_generated_run *run) {
  if (run != NULL) {
    free(run->send);
    free(run->recv);
    free(run->k_send);
    free(run->k_recv);
    free(run->block);
    free(run);
  }
}

static polyccl_result open_ends(pccl_execution *x, pccl_generated_run *run) {
  const pccl_loaded *plan = x->p->plan;
  const pccl_generated_code *code = plan->generated;
  for (uint32_t i = 0; i < code->sends; i++) {
    PCCL_TRY(pccl_plan_end(x->executor, plan, &code->send[i], true, &run->send[i]));
  }
  for (uint32_t i = 0; i < code->receives; i++) {
    PCCL_TRY(pccl_plan_end(x->executor, plan, &code->recv[i], false, &run->recv[i]));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result make_run(pccl_execution *x) {
  const pccl_loaded *plan = x->p->plan;
  const pccl_generated_code *code = plan->generated;
  pccl_generated_run *run = pccl_zeroed(1, sizeof *run);
  if (run == NULL) {
    return pccl_no_memory("a call of generated code");
  }
  run->send = pccl_zeroed(code->sends, sizeof(pccl_end *));
  run->recv = pccl_zeroed(code->receives, sizeof(pccl_end *));
  run->k_send = pccl_zeroed(code->sends, sizeof *run->k_send);
  run->k_recv = pccl_zeroed(code->receives, sizeof *run->k_recv);
  run->block = pccl_zeroed(plan->tbs, sizeof *run->block);
  polyccl_result result =
      run->send != NULL && run->recv != NULL && run->k_send != NULL && run->k_recv != NULL && run->block != NULL
          ? open_ends(x, run)
          : pccl_no_memory("a call of generated code");
  if (result != POLYCCL_SUCCESS) {
    pccl_generated_run_free(run);
    return result;
  }
  run->code = code;
  pccl_generated_run_free(x->executor->lease.generated);
  x->executor->lease.generated = run;
  return POLYCCL_SUCCESS;
}

static void lend_end(pccl_k_end *to, const pccl_end *from) {
  /* The counters are C11 atomics of the same size and representation as the plain words that generated code loads and
   * stores atomically. */
  *to = (pccl_k_end){.tail = (uint64_t *)(void *)from->tail,
                     .head = (uint64_t *)(void *)from->head,
                     .slots = from->slots,
                     .signature = (uint32_t *)(void *)from->signature,
                     .signature_mask = from->signature_mask,
                     .count = from->count,
                     .cached = from->cached};
}

polyccl_result pccl_generated_begin(pccl_execution *x) {
  pccl_generated_run *run = x->executor->lease.generated;
  if (run == NULL || run->code != x->p->plan->generated) {
    PCCL_TRY(make_run(x));
    run = x->executor->lease.generated;
  }
  run->open = false;
  memset(run->block, 0, x->p->plan->tbs * sizeof *run->block);
  const pccl_prepared *p = x->p;
  run->call = (pccl_k_call){.buffer = {x->base[0], x->base[1], x->base[2]},
                            .count = p->count,
                            .stride = p->stride,
                            .tile = p->tile,
                            .batches = p->batches,
                            .slot_bytes = p->slot_bytes,
                            .depth = p->depth,
                            .element = (uint32_t)p->arithmetic.element,
                            .chunks = (uint32_t)p->plan->spec.chunks,
                            .dtype = (uint32_t)p->dtype,
                            .redop = (uint32_t)p->op,
                            .reduce = p->arithmetic.reduce,
                            .signature = x->signature,
                            .recv = run->k_recv,
                            .send = run->k_send,
                            .block = run->block};
  return POLYCCL_SUCCESS;
}

/* The rings may still carry messages of another geometry. */
static bool open_rings(const pccl_execution *x, pccl_generated_run *run) {
  const pccl_generated_code *code = x->p->plan->generated;
  for (uint32_t i = 0; i < code->sends; i++) {
    if (!pccl_end_ready(x->p, run->send[i])) {
      return false;
    }
  }
  for (uint32_t i = 0; i < code->sends; i++) {
    lend_end(&run->k_send[i], run->send[i]);
  }
  for (uint32_t i = 0; i < code->receives; i++) {
    lend_end(&run->k_recv[i], run->recv[i]);
  }
  run->open = true;
  return true;
}

static void settle(pccl_member *member, pccl_end *end, const pccl_k_end *k) {
  bool moved = end->count != k->count;
  end->count = k->count;
  end->cached = k->cached;
  if (moved) {
    pccl_end_flush(member, end);
  }
}

bool pccl_generated_round(pccl_execution *x) {
  pccl_generated_run *run = x->executor->lease.generated;
  const pccl_generated_code *code = x->p->plan->generated;
  if (!run->open && !open_rings(x, run)) {
    return false;
  }
  bool moved = false;
  x->running = 0;
  for (uint32_t t = 0; t < x->p->plan->tbs; t++) {
    pccl_k_block *block = &run->block[t];
    if (!block->ended) {
      moved = code->function[t](&run->call, block) != 0 || moved;
      x->running += !block->ended;
    }
    x->state[t].step = block->at > 0 ? block->at - 1 : 0;
    x->state[t].batch = block->batch;
    x->state[t].done = block->done;
    x->state[t].ended = block->ended != 0;
  }
  for (uint32_t i = 0; moved && i < code->sends; i++) {
    settle(x->member, run->send[i], &run->k_send[i]);
  }
  for (uint32_t i = 0; moved && i < code->receives; i++) {
    settle(x->member, run->recv[i], &run->k_recv[i]);
  }
  return moved;
}
