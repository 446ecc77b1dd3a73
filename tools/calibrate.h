/* polyccl calibrate, in three parts: calibrate.c is the command, calibrate_plans.c makes the small plans that are
 * measured, calibrate_fit.c computes the figures of a device model from the times. */
#ifndef PCCL_TOOLS_CALIBRATE_H
#define PCCL_TOOLS_CALIBRATE_H

#include <stdbool.h>

#include <polyccl/plan.h>
#include <polyccl/topology.h>

enum { PCCL_CALIBRATE_HOPS = 64, PCCL_CALIBRATE_STEPS = 64, PCCL_CALIBRATE_BYTES = 64 };

/* Times of calls of two ranks, in seconds of the slower rank. */
typedef struct pccl_calibration {
  int sizes;
  uint64_t bytes[POLYCCL_MAX_RATES];
  double copies[2];                                       /* calls of 1 and of 1 + STEPS local copies of BYTES */
  double hops[POLYCCL_PROTOCOL_COUNT];                    /* a call in which a message travels HOPS times */
  double send[POLYCCL_PROTOCOL_COUNT][POLYCCL_MAX_RATES]; /* from one rank to the other */
  double reduce[POLYCCL_MAX_RATES];                       /* the same, and the other rank adds its own data */
  double forward[POLYCCL_MAX_RATES];                      /* the same, and the other rank sends the sum back */
  double local[POLYCCL_MAX_RATES];                        /* a copy within each rank, both at the same time */
} pccl_calibration;

/* Each rank copies its input to its output `copies` times. */
polyccl_result pccl_calibrate_copies(int copies, polyccl_plan **plan);
/* A chunk travels between two ranks PCCL_CALIBRATE_HOPS times. */
polyccl_result pccl_calibrate_hops(polyccl_protocol protocol, polyccl_plan **plan);
/* Rank 0 sends its block to rank 1, which stores it (sendrecv) or adds it to its own (reduce). */
polyccl_result pccl_calibrate_transfer(polyccl_protocol protocol, bool reduces, polyccl_plan **plan);

/* Rank 0 sends its block to rank 1, which adds its own and sends the sum back in one step. */
polyccl_result pccl_calibrate_return(polyccl_plan **plan);

/* Sets the figures of the topology's only model so that the simulated times of these plans equal the measured ones. */
polyccl_result pccl_calibrate_fit(const pccl_calibration *measured, polyccl_topology *topology);

#endif
