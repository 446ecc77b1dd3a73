/* A topology for people. */
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/vec.h"
#include "topology/topology.h"

static void write_models(const polyccl_topology *t, pccl_text *out) {
  for (size_t i = 0; i < t->models; i++) {
    const polyccl_device_model *m = &t->model[i];
    pccl_text_add(out,
                  "model %s: vendor %s, memory %g GB/s, reduces at %g GB/s a thread block, at most %d thread blocks",
                  m->name, m->vendor, m->local_bandwidth, m->reduce_bandwidth, (int)m->max_thread_blocks);
    if (m->concurrent_blocks > 0) {
      pccl_text_add(out, " (%d at once)", (int)m->concurrent_blocks);
    }
    if (m->pipeline > 0) {
      pccl_text_add(out, ", steps cut in %d of %llu to %llu B", (int)m->pipeline, (unsigned long long)m->min_tile,
                    (unsigned long long)m->max_tile);
    }
    pccl_text_add(out, m->by_reference ? ", messages by reference\n" : "\n");
    for (int32_t k = 0; k < m->rates; k++) {
      const polyccl_rates *r = &m->rate[k];
      pccl_text_add(
          out, "  calls of %llu B: %g, LL %g, LL128 %g GB/s a thread block, reduces at %g, forwards at %g, memory %g\n",
          (unsigned long long)r->bytes, r->copy[POLYCCL_SIMPLE], r->copy[POLYCCL_LL], r->copy[POLYCCL_LL128], r->reduce,
          r->forward, r->local);
    }
    for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
      const polyccl_protocol_model *q = &m->protocol[p];
      pccl_text_add(out,
                    "  %-7s %g GB/s a thread block, %g %% payload, step %g us, latency %g us (network + %g us), launch "
                    "%g us, %d x %llu B\n",
                    polyccl_protocol_name((polyccl_protocol)p), q->copy_bandwidth, q->efficiency * 100, q->step_cost,
                    q->latency, q->network_latency, q->launch_cost, (int)q->fifo_depth,
                    (unsigned long long)q->slot_bytes);
    }
  }
}

static void write_ranks(const polyccl_topology *t, pccl_text *out) {
  pccl_text_add(out, "ranks:\n");
  for (int32_t r = 0; r < t->ranks; r++) {
    const polyccl_topology_rank *rank = &t->rank[r];
    pccl_text_add(out, "  %d %s in %s, %s\n", (int)r, t->node[rank->node].name, t->machine[rank->machine],
                  t->model[rank->model].name);
  }
}

static void write_links(const polyccl_topology *t, pccl_text *out) {
  pccl_text_add(out, "links:\n");
  for (size_t i = 0; i < t->links; i++) {
    const polyccl_link *link = &t->link[i];
    bool pair = pccl_link_is_pair(t, i);
    pccl_text_add(out, "  %s %s %s: %s %g GB/s, %g us\n", t->node[link->from].name, pair ? "<->" : "->",
                  t->node[link->to].name, t->link_type[link->type], link->bandwidth, link->latency);
    i += pair;
  }
}

static polyccl_result write_route(const polyccl_topology *t, int src, int dst, int32_t **links, size_t *capacity,
                                  pccl_text *out) {
  size_t count;
  PCCL_TRY(polyccl_topology_route(t, src, dst, *links, *capacity, &count));
  if (count > *capacity) {
    if (!pccl_vec_grow((void **)links, capacity, 0, count, sizeof **links)) {
      return pccl_no_memory("a route");
    }
    PCCL_TRY(polyccl_topology_route(t, src, dst, *links, *capacity, &count));
  }
  double narrowest = PCCL_MAX_BANDWIDTH, latency = 0;
  pccl_text_add(out, "  %d -> %d: %s", src, dst, t->node[t->rank[src].node].name);
  for (size_t i = 0; i < count; i++) {
    const polyccl_link *link = &t->link[(*links)[i]];
    pccl_text_add(out, " %s", t->node[link->to].name);
    narrowest = link->bandwidth < narrowest ? link->bandwidth : narrowest;
    latency += link->latency;
  }
  pccl_text_add(out, " (%g GB/s, %g us)\n", narrowest, latency);
  return POLYCCL_SUCCESS;
}

/* From the first rank to all, and of other machines from the last: what there is to see without the square of it. */
static polyccl_result write_routes(const polyccl_topology *t, pccl_text *out) {
  enum { MAX_ROUTES = 64 };
  int32_t *links = NULL;
  size_t capacity = 0;
  polyccl_result result = POLYCCL_SUCCESS;
  pccl_text_add(out, "routes from rank 0:\n");
  for (int dst = 1; dst < t->ranks && dst <= MAX_ROUTES && result == POLYCCL_SUCCESS; dst++) {
    result = write_route(t, 0, dst, &links, &capacity, out);
  }
  if (t->ranks > MAX_ROUTES + 1) {
    pccl_text_add(out, "  ... and to %d more\n", (int)t->ranks - MAX_ROUTES - 1);
  }
  free(links);
  return result;
}

polyccl_result polyccl_topology_write_text(const polyccl_topology *t, FILE *to) {
  pccl_text out = {0};
  pccl_text_add(&out, "topology %s: %d ranks, %d machines, %zu nodes, %zu links\nsource: %s\n", t->name, (int)t->ranks,
                (int)t->machines, t->nodes, t->links, t->source);
  for (size_t i = 0; i < t->assumptions; i++) {
    pccl_text_add(&out, "assumed: %s\n", t->assumption[i]);
  }
  write_models(t, &out);
  write_ranks(t, &out);
  write_links(t, &out);
  polyccl_result result = write_routes(t, &out);
  if (result == POLYCCL_SUCCESS) {
    result = pccl_topology_put(&out, to);
  }
  pccl_text_free(&out);
  return result;
}

polyccl_result pccl_topology_put(const pccl_text *text, FILE *to) {
  if (text->failed) {
    return pccl_no_memory("the text of a topology");
  }
  if (fwrite(text->data, 1, text->len, to) != text->len || fflush(to) != 0) {
    return pccl_fail_errno("cannot write the topology");
  }
  return POLYCCL_SUCCESS;
}
