#include <math.h>

#include <polyccl/simulator.h>

#include "base/error.h"
#include "calibrate.h"

static const double MIN_RATE = 0.05,
                    MAX_RATE = 400; /* GB/s of a core; a rate outside these is an error of measurement */

static polyccl_result simulate_seconds(const polyccl_plan *plan, const polyccl_topology *t, uint64_t bytes,
                                       double *seconds) {
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = bytes;
  polyccl_simulation *simulation;
  PCCL_TRY(polyccl_simulate(plan, t, &options, &simulation));
  *seconds = simulation->time * 1e-6;
  polyccl_simulation_destroy(simulation);
  return POLYCCL_SUCCESS;
}

/* Finds the rate at which the simulated time equals the measured one, by bisection: time falls as the rate grows. */
static polyccl_result find_rate(const polyccl_plan *plan, const polyccl_topology *t, uint64_t bytes, double measured,
                                double *rate) {
  enum { HALVINGS = 40 };
  double low = MIN_RATE, high = MAX_RATE;
  for (int i = 0; i < HALVINGS; i++) {
    double seconds;
    *rate = sqrt(low * high);
    PCCL_TRY(simulate_seconds(plan, t, bytes, &seconds));
    *(seconds > measured ? &low : &high) = *rate;
  }
  return POLYCCL_SUCCESS;
}

/* Computes the costs that do not depend on the size: those of a call and of a step from local copies, then the latency,
 * which is what a hop takes beyond its two steps. They include the time of the few bytes that move. */
static void fit_costs(const pccl_calibration *measured, polyccl_device_model *m) {
  double step = fmax((measured->copies[1] - measured->copies[0]) / PCCL_CALIBRATE_STEPS * 1e6, 1e-4);
  double launch = fmax(measured->copies[0] * 1e6 - step, 1e-4);
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    double hop = (measured->hops[p] * 1e6 - launch) / PCCL_CALIBRATE_HOPS;
    m->protocol[p].launch_cost = launch;
    m->protocol[p].step_cost = step;
    m->protocol[p].latency = fmax(hop - 2 * step, 0);
    m->protocol[p].network_latency = 0;
  }
}

static polyccl_result fit_copies(const pccl_calibration *measured, polyccl_topology *t, polyccl_rates *rates) {
  polyccl_device_model *m = &t->model[0];
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    polyccl_plan *plan;
    PCCL_TRY(pccl_calibrate_transfer((polyccl_protocol)p, false, &plan));
    polyccl_result result = POLYCCL_SUCCESS;
    for (int i = 0; i < measured->sizes && result == POLYCCL_SUCCESS; i++) {
      result = find_rate(plan, t, measured->bytes[i], measured->send[p][i], &m->protocol[p].copy_bandwidth);
      rates[i].copy[p] = m->protocol[p].copy_bandwidth;
    }
    polyccl_plan_destroy(plan);
    PCCL_TRY(result);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result fit_reductions(const pccl_calibration *measured, polyccl_topology *t, polyccl_rates *rates) {
  polyccl_device_model *m = &t->model[0];
  polyccl_plan *plan;
  PCCL_TRY(pccl_calibrate_transfer(POLYCCL_SIMPLE, true, &plan));
  polyccl_result result = POLYCCL_SUCCESS;
  for (int i = 0; i < measured->sizes && result == POLYCCL_SUCCESS; i++) {
    m->protocol[POLYCCL_SIMPLE].copy_bandwidth = rates[i].copy[POLYCCL_SIMPLE];
    result = find_rate(plan, t, measured->bytes[i], measured->reduce[i], &m->reduce_bandwidth);
    /* A reduction that seems faster than a copy is as fast: the simulator takes the slower of the two. */
    double copy = rates[i].copy[POLYCCL_SIMPLE];
    rates[i].reduce = m->reduce_bandwidth < copy ? m->reduce_bandwidth : copy;
  }
  polyccl_plan_destroy(plan);
  return result;
}

/* A forwarding step costs its core a receive and a send, but no less than the slower of the two. */
static polyccl_result fit_forwards(const pccl_calibration *measured, polyccl_topology *t, polyccl_rates *rates) {
  polyccl_device_model *m = &t->model[0];
  polyccl_plan *plan;
  PCCL_TRY(pccl_calibrate_return(&plan));
  polyccl_result result = POLYCCL_SUCCESS;
  for (int i = 0; i < measured->sizes && result == POLYCCL_SUCCESS; i++) {
    m->protocol[POLYCCL_SIMPLE].copy_bandwidth = rates[i].copy[POLYCCL_SIMPLE];
    m->reduce_bandwidth = rates[i].reduce;
    result = find_rate(plan, t, measured->bytes[i], measured->forward[i], &m->forward_bandwidth);
    rates[i].forward = fmin(m->forward_bandwidth, rates[i].reduce);
  }
  polyccl_plan_destroy(plan);
  return result;
}

polyccl_result pccl_calibrate_fit(const pccl_calibration *measured, polyccl_topology *topology) {
  polyccl_device_model *m = &topology->model[0];
  polyccl_rates rates[POLYCCL_MAX_RATES] = {{0}};
  m->rates = 0;
  m->forward_bandwidth = 0;
  m->reduce_bandwidth = m->local_bandwidth = MAX_RATE * 2;
  fit_costs(measured, m);
  PCCL_TRY(fit_copies(measured, topology, rates));
  PCCL_TRY(fit_reductions(measured, topology, rates));
  PCCL_TRY(fit_forwards(measured, topology, rates));
  double fixed = (m->protocol[0].launch_cost + m->protocol[0].step_cost) * 1e-6;
  for (int i = 0; i < measured->sizes; i++) {
    double seconds = fmax(measured->local[i] - fixed, measured->local[i] / 10);
    rates[i].bytes = measured->bytes[i];
    rates[i].local = fmin(fmax((double)measured->bytes[i] / seconds * 1e-9, MIN_RATE), MAX_RATE);
    m->rate[i] = rates[i];
  }
  m->rates = measured->sizes;
  const polyccl_rates *last = &rates[measured->sizes - 1];
  for (int p = 0; p < POLYCCL_PROTOCOL_COUNT; p++) {
    m->protocol[p].copy_bandwidth = last->copy[p];
  }
  m->reduce_bandwidth = last->reduce;
  m->forward_bandwidth = last->forward;
  m->local_bandwidth = last->local;
  return POLYCCL_SUCCESS;
}
