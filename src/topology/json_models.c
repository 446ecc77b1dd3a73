/* The device models of a topology in JSON. */
#include <string.h>

#include "base/error.h"
#include "topology/json_reader.h"

static polyccl_result read_protocol(const pccl_json_reader *r, const char *place, const json_t *object,
                                    polyccl_protocol_model *p) {
  static const pccl_json_member members[] = {
      {"copy_bandwidth", JSON_REAL, false}, {"efficiency", JSON_REAL, false},      {"step_cost", JSON_REAL, false},
      {"latency", JSON_REAL, false},        {"network_latency", JSON_REAL, false}, {"launch_cost", JSON_REAL, false},
      {"slot_bytes", JSON_INTEGER, false},  {"fifo_depth", JSON_INTEGER, false}};
  PCCL_TRY(pccl_json_check(r, place, object, members, sizeof members / sizeof members[0]));
  p->copy_bandwidth = pccl_json_number_or(object, "copy_bandwidth", p->copy_bandwidth);
  p->efficiency = pccl_json_number_or(object, "efficiency", p->efficiency);
  p->step_cost = pccl_json_number_or(object, "step_cost", p->step_cost);
  p->latency = pccl_json_number_or(object, "latency", p->latency);
  p->network_latency = pccl_json_number_or(object, "network_latency", p->network_latency);
  p->launch_cost = pccl_json_number_or(object, "launch_cost", p->launch_cost);
  const json_t *slot = json_object_get(object, "slot_bytes");
  if (slot != NULL && json_integer_value(slot) < 1) {
    return pccl_json_refuse(r, place, "\"slot_bytes\" must be at least 1");
  }
  p->slot_bytes = slot != NULL ? (uint64_t)json_integer_value(slot) : p->slot_bytes;
  return pccl_json_whole_or(r, place, object, "fifo_depth", p->fifo_depth, &p->fifo_depth);
}

static polyccl_result read_protocols(const pccl_json_reader *r, const char *place, const json_t *object,
                                     polyccl_device_model *model) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    char where[256];
    snprintf(where, sizeof where, "%s.protocols.%.40s", place, key);
    polyccl_protocol protocol;
    PCCL_TRY(pccl_json_prefix(r, where, polyccl_protocol_parse(key, &protocol)));
    PCCL_TRY(read_protocol(r, where, value, &model->protocol[protocol]));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_tiles(const pccl_json_reader *r, const char *place, const json_t *object,
                                 polyccl_device_model *model) {
  static const pccl_json_member members[] = {
      {"pipeline", JSON_INTEGER, true}, {"min", JSON_INTEGER, true}, {"max", JSON_INTEGER, true}};
  char where[256];
  snprintf(where, sizeof where, "%s.tiles", place);
  PCCL_TRY(pccl_json_check(r, where, object, members, sizeof members / sizeof members[0]));
  int32_t min = 0, max = 0;
  PCCL_TRY(pccl_json_whole_or(r, where, object, "pipeline", 0, &model->pipeline));
  if (model->pipeline < 1) {
    return pccl_json_refuse(r, where, "\"pipeline\" must be at least 1");
  }
  PCCL_TRY(pccl_json_whole_or(r, where, object, "min", 0, &min));
  PCCL_TRY(pccl_json_whole_or(r, where, object, "max", 0, &max));
  model->min_tile = (uint64_t)min;
  model->max_tile = (uint64_t)max;
  return POLYCCL_SUCCESS;
}

static polyccl_result read_rates(const pccl_json_reader *r, const char *place, const json_t *list,
                                 polyccl_device_model *model) {
  static const pccl_json_member members[] = {{"bytes", JSON_INTEGER, true}, {"Simple", JSON_REAL, true},
                                             {"LL", JSON_REAL, true},       {"LL128", JSON_REAL, true},
                                             {"reduce", JSON_REAL, true},   {"forward", JSON_REAL, true},
                                             {"local", JSON_REAL, true}};
  model->rates = 0;
  size_t i;
  json_t *value;
  json_array_foreach((json_t *)list, i, value) {
    char where[256];
    snprintf(where, sizeof where, "%s.rates[%zu]", place, i);
    if (i >= POLYCCL_MAX_RATES) {
      return pccl_json_refuse(r, where, "the list has more than %d sizes", POLYCCL_MAX_RATES);
    }
    PCCL_TRY(pccl_json_check(r, where, value, members, sizeof members / sizeof members[0]));
    polyccl_rates *rate = &model->rate[model->rates++];
    json_int_t bytes = json_integer_value(json_object_get(value, "bytes"));
    rate->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
      rate->copy[p] = pccl_json_number_or(value, polyccl_protocol_name((polyccl_protocol)p), 0);
    }
    rate->reduce = pccl_json_number_or(value, "reduce", 0);
    rate->forward = pccl_json_number_or(value, "forward", 0);
    rate->local = pccl_json_number_or(value, "local", 0);
  }
  return POLYCCL_SUCCESS;
}

/* A figure that the file does not give is that of the shipped model of the same name, else that of "generic". */
polyccl_result pccl_json_read_model(pccl_json_reader *r, const char *place, const json_t *object) {
  static const pccl_json_member members[] = {{"name", JSON_STRING, true},
                                             {"vendor", JSON_STRING, false},
                                             {"reduce_bandwidth", JSON_REAL, false},
                                             {"forward_bandwidth", JSON_REAL, false},
                                             {"local_bandwidth", JSON_REAL, false},
                                             {"contention", JSON_REAL, false},
                                             {"max_thread_blocks", JSON_INTEGER, false},
                                             {"max_channels", JSON_INTEGER, false},
                                             {"concurrent_blocks", JSON_INTEGER, false},
                                             {"by_reference", JSON_TRUE, false},
                                             {"tiles", JSON_OBJECT, false},
                                             {"rates", JSON_ARRAY, false},
                                             {"protocols", JSON_OBJECT, false}};
  PCCL_TRY(pccl_json_check(r, place, object, members, sizeof members / sizeof members[0]));
  const char *name = pccl_json_string_or(object, "name", "");
  const polyccl_device_model *base = pccl_known_model_find(name);
  polyccl_device_model model = base != NULL ? *base : pccl_known_models[0].model;
  const char *vendor = pccl_json_string_or(object, "vendor", model.vendor);
  char name_copy[PCCL_MAX_NAME + 2], vendor_copy[PCCL_MAX_NAME + 2];
  snprintf(name_copy, sizeof name_copy, "%s", name);
  snprintf(vendor_copy, sizeof vendor_copy, "%s", vendor);
  model.name = name_copy;
  model.vendor = vendor_copy;
  model.reduce_bandwidth = pccl_json_number_or(object, "reduce_bandwidth", model.reduce_bandwidth);
  model.forward_bandwidth = pccl_json_number_or(object, "forward_bandwidth", model.forward_bandwidth);
  model.local_bandwidth = pccl_json_number_or(object, "local_bandwidth", model.local_bandwidth);
  model.contention = pccl_json_number_or(object, "contention", model.contention);
  PCCL_TRY(
      pccl_json_whole_or(r, place, object, "max_thread_blocks", model.max_thread_blocks, &model.max_thread_blocks));
  PCCL_TRY(pccl_json_whole_or(r, place, object, "max_channels", model.max_channels, &model.max_channels));
  PCCL_TRY(
      pccl_json_whole_or(r, place, object, "concurrent_blocks", model.concurrent_blocks, &model.concurrent_blocks));
  const json_t *by_reference = json_object_get(object, "by_reference");
  model.by_reference = by_reference != NULL ? json_is_true(by_reference) : model.by_reference;
  const json_t *protocols = json_object_get(object, "protocols");
  if (protocols != NULL) {
    PCCL_TRY(read_protocols(r, place, protocols, &model));
  }
  const json_t *tiles = json_object_get(object, "tiles"), *rates = json_object_get(object, "rates");
  if (tiles != NULL) {
    PCCL_TRY(read_tiles(r, place, tiles, &model));
  }
  if (rates != NULL) {
    PCCL_TRY(read_rates(r, place, rates, &model));
  }
  int32_t index;
  return pccl_json_prefix(r, place, pccl_builder_model(&r->builder, &model, &index));
}
