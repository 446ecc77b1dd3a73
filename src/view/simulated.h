/* A simulation as a trace. */
#ifndef PCCL_VIEW_SIMULATED_H
#define PCCL_VIEW_SIMULATED_H

#include <polyccl/simulator.h>
#include <polyccl/trace.h>

/* What polyccl_simulate() kept of the run (POLYCCL_SIM_TIMELINE, _LINK_USE, _CRITICAL) as a finished trace; links by
 * the names of their ends. */
polyccl_result pccl_trace_of_simulation(const polyccl_simulation *simulation, const polyccl_plan *plan,
                                        const polyccl_topology *topology, polyccl_trace **trace);

#endif
