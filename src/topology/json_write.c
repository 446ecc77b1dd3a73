/* Writes a topology as JSON, one item on a line. json_read.c reads back an equal topology. */
#include <stdlib.h>

#include "base/escape.h"
#include "base/file.h"
#include "topology/topology.h"

/* The shortest text that reads back as the same number. */
static void add_number(pccl_text *out, const char *key, double value) {
  char text[32];
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) {
      break;
    }
  }
  pccl_text_add(out, "\"%s\": %s", key, text);
}

static void add_string(pccl_text *out, const char *key, const char *value) {
  if (key != NULL) {
    pccl_text_add(out, "\"%s\": ", key);
  }
  pccl_escape_json(out, value);
}

static void add_protocol(pccl_text *out, const char *name, const polyccl_protocol_model *p) {
  pccl_text_add(out, "      \"%s\": {", name);
  add_number(out, "copy_bandwidth", p->copy_bandwidth);
  pccl_text_add(out, ", ");
  add_number(out, "efficiency", p->efficiency);
  pccl_text_add(out, ", ");
  add_number(out, "step_cost", p->step_cost);
  pccl_text_add(out, ", ");
  add_number(out, "latency", p->latency);
  pccl_text_add(out, ", ");
  add_number(out, "network_latency", p->network_latency);
  pccl_text_add(out, ", ");
  add_number(out, "launch_cost", p->launch_cost);
  pccl_text_add(out, ", \"slot_bytes\": %llu, \"fifo_depth\": %d}", (unsigned long long)p->slot_bytes,
                (int)p->fifo_depth);
}

static void add_tiles(pccl_text *out, const polyccl_device_model *m) {
  if (m->pipeline > 0) {
    pccl_text_add(out, ",\n     \"tiles\": {\"pipeline\": %d, \"min\": %llu, \"max\": %llu}", (int)m->pipeline,
                  (unsigned long long)m->min_tile, (unsigned long long)m->max_tile);
  }
}

static void add_rates(pccl_text *out, const polyccl_device_model *m) {
  for (int32_t i = 0; i < m->rates; i++) {
    const polyccl_rates *r = &m->rate[i];
    pccl_text_add(out, i == 0 ? ",\n     \"rates\": [\n" : ",\n");
    pccl_text_add(out, "      {\"bytes\": %llu", (unsigned long long)r->bytes);
    for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
      pccl_text_add(out, ", ");
      add_number(out, polyccl_protocol_name((polyccl_protocol)p), r->copy[p]);
    }
    pccl_text_add(out, ", ");
    add_number(out, "reduce", r->reduce);
    pccl_text_add(out, ", ");
    add_number(out, "forward", r->forward);
    pccl_text_add(out, ", ");
    add_number(out, "local", r->local);
    pccl_text_add(out, "}");
  }
  pccl_text_add(out, m->rates > 0 ? "]" : "");
}

static void add_model(pccl_text *out, const polyccl_device_model *m) {
  pccl_text_add(out, "    {");
  add_string(out, "name", m->name);
  pccl_text_add(out, ", ");
  add_string(out, "vendor", m->vendor);
  pccl_text_add(out, ",\n     ");
  add_number(out, "reduce_bandwidth", m->reduce_bandwidth);
  pccl_text_add(out, ", ");
  add_number(out, "forward_bandwidth", m->forward_bandwidth);
  pccl_text_add(out, ", ");
  add_number(out, "local_bandwidth", m->local_bandwidth);
  pccl_text_add(out, ", ");
  add_number(out, "contention", m->contention);
  pccl_text_add(
      out, ",\n     \"max_thread_blocks\": %d, \"max_channels\": %d, \"concurrent_blocks\": %d, \"by_reference\": %s",
      (int)m->max_thread_blocks, (int)m->max_channels, (int)m->concurrent_blocks, m->by_reference ? "true" : "false");
  add_tiles(out, m);
  add_rates(out, m);
  pccl_text_add(out, ",\n     \"protocols\": {\n");
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    add_protocol(out, polyccl_protocol_name((polyccl_protocol)p), &m->protocol[p]);
    pccl_text_add(out, p + 1 < POLYCCL_PROTOCOL_COUNT ? ",\n" : "}}");
  }
}

static void add_node(pccl_text *out, const polyccl_topology *t, const polyccl_node *node) {
  pccl_text_add(out, "    {");
  add_string(out, "name", node->name);
  pccl_text_add(out, ", \"kind\": \"%s\"", polyccl_node_kind_name(node->kind));
  if (node->machine >= 0) {
    pccl_text_add(out, ", ");
    add_string(out, "machine", t->machine[node->machine]);
  }
  if (node->model >= 0) {
    pccl_text_add(out, ", ");
    add_string(out, "model", t->model[node->model].name);
  }
  if (node->rank >= 0) {
    pccl_text_add(out, ", \"rank\": %d", (int)node->rank);
  }
  if (node->domain > 0) {
    pccl_text_add(out, ", \"domain\": %d", (int)node->domain);
  }
  pccl_text_add(out, "}");
}

static void add_link(pccl_text *out, const polyccl_topology *t, const polyccl_link *link, bool pair) {
  pccl_text_add(out, "    {");
  if (pair) {
    pccl_text_add(out, "\"between\": [");
    add_string(out, NULL, t->node[link->from].name);
    pccl_text_add(out, ", ");
    add_string(out, NULL, t->node[link->to].name);
    pccl_text_add(out, "], ");
  } else {
    add_string(out, "from", t->node[link->from].name);
    pccl_text_add(out, ", ");
    add_string(out, "to", t->node[link->to].name);
    pccl_text_add(out, ", ");
  }
  add_string(out, "type", t->link_type[link->type]);
  pccl_text_add(out, ", ");
  add_number(out, "bandwidth", link->bandwidth);
  pccl_text_add(out, ", ");
  add_number(out, "latency", link->latency);
  pccl_text_add(out, "}");
}

polyccl_result polyccl_topology_write_json(const polyccl_topology *t, FILE *to) {
  pccl_text out = {0};
  pccl_text_add(&out, "{\n  \"polyccl_topology\": 1,\n  ");
  add_string(&out, "name", t->name);
  pccl_text_add(&out, ",\n  ");
  add_string(&out, "source", t->source);
  for (size_t i = 0; i < t->assumptions; i++) {
    pccl_text_add(&out, i == 0 ? ",\n  \"assumed\": [\n    " : ",\n    ");
    add_string(&out, NULL, t->assumption[i]);
  }
  pccl_text_add(&out, t->assumptions > 0 ? "]" : "");
  pccl_text_add(&out, ",\n  \"models\": [\n");
  for (size_t i = 0; i < t->models; i++) {
    add_model(&out, &t->model[i]);
    pccl_text_add(&out, i + 1 < t->models ? ",\n" : "\n");
  }
  pccl_text_add(&out, "  ],\n  \"machines\": [");
  for (int32_t i = 0; i < t->machines; i++) {
    pccl_text_add(&out, i > 0 ? ", " : "");
    add_string(&out, NULL, t->machine[i]);
  }
  pccl_text_add(&out, "],\n  \"nodes\": [\n");
  for (size_t i = 0; i < t->nodes; i++) {
    add_node(&out, t, &t->node[i]);
    pccl_text_add(&out, i + 1 < t->nodes ? ",\n" : "\n");
  }
  pccl_text_add(&out, "  ],\n  \"links\": [\n");
  for (size_t i = 0; i < t->links; i++) {
    bool pair = pccl_link_is_pair(t, i);
    add_link(&out, t, &t->link[i], pair);
    i += pair;
    pccl_text_add(&out, i + 1 < t->links ? ",\n" : "\n");
  }
  pccl_text_add(&out, "  ]\n}\n");
  polyccl_result result = pccl_topology_put(&out, to);
  pccl_text_free(&out);
  return result;
}
