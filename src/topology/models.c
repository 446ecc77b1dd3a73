/* The device models that ship. docs/topology.md gives the derivation of each figure. */
#include <math.h>
#include <strings.h>

#include "base/error.h"
#include "base/size.h"
#include "topology/topology.h"

enum { KIB = 1024 };

/* Slots and depths are those of the buffers of NCCL and MSCCL, without the part that the flags of the protocol take. */
#define SIMPLE_SLOTS .slot_bytes = 512 * KIB, .fifo_depth = 2
#define LL_SLOTS .slot_bytes = 32 * KIB, .fifo_depth = 8
#define LL128_SLOTS .slot_bytes = 576000, .fifo_depth = 8

/* These costs differ little between devices. They are the part of NCCL's latency of a hop (LL, LL128, Simple: 0.6, 1.9,
 * 3.4 us on NVLink; 2.7, 4.0, 14 us on a network) that is not the latency of links. */
#define SIMPLE(gbps)                                                                                     \
  {                                                                                                      \
    .copy_bandwidth = (gbps), .efficiency = 1, .step_cost = 0.5, .latency = 2.5, .network_latency = 8.5, \
    .launch_cost = 8.4, SIMPLE_SLOTS                                                                     \
  }
#define LL(gbps)                                                                                       \
  {                                                                                                    \
    .copy_bandwidth = (gbps), .efficiency = 0.5, .step_cost = 0.2, .latency = 0, .network_latency = 0, \
    .launch_cost = 6.6, LL_SLOTS                                                                       \
  }
#define LL128(gbps)                                                                                         \
  {                                                                                                         \
    .copy_bandwidth = (gbps), .efficiency = 0.9375, .step_cost = 0.4, .latency = 1.1, .network_latency = 0, \
    .launch_cost = 14, LL128_SLOTS                                                                          \
  }

#define GPU_TUNING "NCCL's tuning constants (per-channel bandwidths, latencies), MSCCL's FIFO sizes"

const pccl_known_model pccl_known_models[] = {
    {{.name = "generic",
      .vendor = "generic",
      .protocol = {SIMPLE(20), LL(4), LL128(18)},
      .reduce_bandwidth = 20,
      .local_bandwidth = 1000,
      .contention = 0.01,
      .max_thread_blocks = 128,
      .max_channels = 32},
     "round figures of a GPU, of no product"},
    {{.name = "V100-SXM2",
      .vendor = "nvidia",
      .protocol = {SIMPLE(26.5), LL(3.25), LL128(20)},
      .reduce_bandwidth = 26.5,
      .local_bandwidth = 900,
      .contention = 0.01,
      .max_thread_blocks = 80,
      .max_channels = 32},
     "NVIDIA Tesla V100 datasheet (900 GB/s HBM2, 80 SMs); " GPU_TUNING},
    {{.name = "A100-SXM4-40GB",
      .vendor = "nvidia",
      .protocol = {SIMPLE(24), LL(3.65), LL128(20)},
      .reduce_bandwidth = 24,
      .local_bandwidth = 1555,
      .contention = 0.01,
      .max_thread_blocks = 108,
      .max_channels = 32},
     "NVIDIA A100 datasheet (1555 GB/s HBM2, 108 SMs); " GPU_TUNING},
    {{.name = "H100-SXM5",
      .vendor = "nvidia",
      .protocol = {SIMPLE(38.7), LL(5.9), LL128(36.7)},
      .reduce_bandwidth = 38.7,
      .local_bandwidth = 3350,
      .contention = 0.01,
      .max_thread_blocks = 132,
      .max_channels = 32},
     "NVIDIA H100 datasheet (3.35 TB/s HBM3, 132 SMs); " GPU_TUNING},
    {{.name = "H200-SXM",
      .vendor = "nvidia",
      .protocol = {SIMPLE(38.7), LL(5.9), LL128(36.7)},
      .reduce_bandwidth = 38.7,
      .local_bandwidth = 4800,
      .contention = 0.01,
      .max_thread_blocks = 132,
      .max_channels = 32},
     "NVIDIA H200 datasheet (4.8 TB/s HBM3e, 132 SMs); " GPU_TUNING},
    {{.name = "B200",
      .vendor = "nvidia",
      .protocol = {SIMPLE(70), LL(11.75), LL128(40)},
      .reduce_bandwidth = 70,
      .local_bandwidth = 8000,
      .contention = 0.01,
      .max_thread_blocks = 148,
      .max_channels = 32},
     "NVIDIA DGX B200 datasheet (64 TB/s HBM3e of 8 GPUs), Blackwell tuning guide (148 SMs); " GPU_TUNING},
    {{.name = "MI300X",
      .vendor = "amd",
      .protocol = {SIMPLE(20), LL(4), LL128(18)},
      .reduce_bandwidth = 20,
      .local_bandwidth = 5300,
      .contention = 0.01,
      .max_thread_blocks = 304,
      .max_channels = 32},
     "AMD Instinct MI300X data sheet (5.3 TB/s HBM3, 304 compute units); protocols as \"generic\""},
    {{.name = "MI350X",
      .vendor = "amd",
      .protocol = {SIMPLE(20), LL(4), LL128(18)},
      .reduce_bandwidth = 20,
      .local_bandwidth = 8000,
      .contention = 0.01,
      .max_thread_blocks = 256,
      .max_channels = 32},
     "AMD Instinct MI350X data sheet (8 TB/s HBM3E, 256 compute units); protocols as \"generic\""},
    {{.name = "cpu",
      .vendor = "cpu",
      .protocol = {{.copy_bandwidth = 10,
                    .efficiency = 1,
                    .step_cost = 0.05,
                    .latency = 0.1,
                    .launch_cost = 0.5,
                    .slot_bytes = 256 * KIB,
                    .fifo_depth = 8},
                   {.copy_bandwidth = 5,
                    .efficiency = 0.875,
                    .step_cost = 0.05,
                    .latency = 0.05,
                    .launch_cost = 0.5,
                    .slot_bytes = 8 * KIB,
                    .fifo_depth = 8},
                   {.copy_bandwidth = 5,
                    .efficiency = 0.875,
                    .step_cost = 0.05,
                    .latency = 0.05,
                    .launch_cost = 0.5,
                    .slot_bytes = 8 * KIB,
                    .fifo_depth = 8}},
      .reduce_bandwidth = 8,
      .forward_bandwidth = 5,
      .local_bandwidth = 20,
      .contention = 0,
      .max_thread_blocks = 1024,
      .max_channels = 1024,
      .concurrent_blocks = 1,
      .pipeline = PCCL_TILE_PIPELINE,
      .min_tile = PCCL_TILE_MIN,
      .max_tile = PCCL_TILE_MAX,
      .by_reference = true},
     "round figures of a core; `polyccl calibrate` measures this machine's"},
    {{.name = NULL}, NULL},
};

const polyccl_device_model *pccl_known_model_find(const char *name) {
  for (const pccl_known_model *known = pccl_known_models; known->model.name != NULL; known++) {
    if (strcasecmp(known->model.name, name) == 0) {
      return &known->model;
    }
  }
  return NULL;
}

static polyccl_result check_number(const char *model, const char *field, double value, double min, double max) {
  if (!(value >= min && value <= max)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "model \"%s\": %s is %g, not within %g .. %g", model, field, value, min,
                     max);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_protocol(const char *model, const char *protocol, const polyccl_protocol_model *p) {
  const struct {
    const char *field;
    double value, min, max;
  } checks[] = {
      {"copy_bandwidth", p->copy_bandwidth, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH},
      {"efficiency", p->efficiency, 0.01, 1},
      {"step_cost", p->step_cost, 0, PCCL_MAX_LATENCY},
      {"latency", p->latency, 0, PCCL_MAX_LATENCY},
      {"network_latency", p->network_latency, 0, PCCL_MAX_LATENCY},
      {"launch_cost", p->launch_cost, 0, PCCL_MAX_LATENCY},
      {"slot_bytes", (double)p->slot_bytes, 64, 1099511627776.0},
      {"fifo_depth", p->fifo_depth, 1, 65536},
  };
  for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
    char field[64];
    snprintf(field, sizeof field, "%s.%s", protocol, checks[i].field);
    PCCL_TRY(check_number(model, field, checks[i].value, checks[i].min, checks[i].max));
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_rates(const polyccl_device_model *model) {
  if (model->rates < 0 || model->rates > POLYCCL_MAX_RATES) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "model \"%s\": it has %d rates, more than %d", model->name,
                     (int)model->rates, POLYCCL_MAX_RATES);
  }
  for (int32_t i = 0; i < model->rates; i++) {
    const polyccl_rates *r = &model->rate[i];
    if (r->bytes == 0 || (i > 0 && r->bytes <= model->rate[i - 1].bytes)) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "model \"%s\": rates[%d].bytes must be above the one before", model->name,
                       (int)i);
    }
    char field[64];
    for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
      snprintf(field, sizeof field, "rates[%d].copy[%d]", (int)i, p);
      PCCL_TRY(check_number(model->name, field, r->copy[p], PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH));
    }
    snprintf(field, sizeof field, "rates[%d].reduce", (int)i);
    PCCL_TRY(check_number(model->name, field, r->reduce, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH));
    snprintf(field, sizeof field, "rates[%d].forward", (int)i);
    PCCL_TRY(check_number(model->name, field, r->forward, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH));
    snprintf(field, sizeof field, "rates[%d].local", (int)i);
    PCCL_TRY(check_number(model->name, field, r->local, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH));
  }
  return POLYCCL_SUCCESS;
}

static double interpolate(double low, double high, double share) { return low * pow(high / low, share); }

polyccl_device_model polyccl_device_model_at(const polyccl_device_model *model, uint64_t bytes) {
  polyccl_device_model at = *model;
  if (model->rates == 0) {
    return at;
  }
  int32_t next = 0;
  while (next < model->rates && model->rate[next].bytes < bytes) {
    next++;
  }
  const polyccl_rates *high = &model->rate[next < model->rates ? next : model->rates - 1];
  const polyccl_rates *low = next > 0 ? &model->rate[next - 1] : high;
  double share =
      low != high ? log2((double)bytes / (double)low->bytes) / log2((double)high->bytes / (double)low->bytes) : 0;
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    at.protocol[p].copy_bandwidth = interpolate(low->copy[p], high->copy[p], share);
  }
  at.reduce_bandwidth = interpolate(low->reduce, high->reduce, share);
  at.forward_bandwidth = interpolate(low->forward, high->forward, share);
  at.local_bandwidth = interpolate(low->local, high->local, share);
  return at;
}

polyccl_result pccl_model_check(const polyccl_device_model *model) {
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    PCCL_TRY(check_protocol(model->name, polyccl_protocol_name((polyccl_protocol)p), &model->protocol[p]));
  }
  const char *name = model->name;
  PCCL_TRY(check_number(name, "reduce_bandwidth", model->reduce_bandwidth, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH));
  if (model->forward_bandwidth != 0) {
    PCCL_TRY(check_number(name, "forward_bandwidth", model->forward_bandwidth, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH));
  }
  PCCL_TRY(check_number(name, "local_bandwidth", model->local_bandwidth, PCCL_MIN_BANDWIDTH, PCCL_MAX_BANDWIDTH));
  PCCL_TRY(check_number(name, "contention", model->contention, 0, 1));
  PCCL_TRY(check_number(name, "max_thread_blocks", model->max_thread_blocks, 1, 1 << 20));
  PCCL_TRY(check_number(name, "tiles.pipeline", model->pipeline, 0, 1 << 20));
  if (model->pipeline > 0) {
    PCCL_TRY(check_number(name, "tiles.min", (double)model->min_tile, 1, 1099511627776.0));
    PCCL_TRY(check_number(name, "tiles.max", (double)model->max_tile, (double)model->min_tile, 1099511627776.0));
  }
  PCCL_TRY(check_rates(model));
  PCCL_TRY(check_number(name, "max_channels", model->max_channels, 1, 1 << 20));
  return check_number(name, "concurrent_blocks", model->concurrent_blocks, 0, 1 << 20);
}
