/* polyccl calibrate, in three parts: calibrate.c is the command, calibrate_plans.c makes the little plans that are
 * measured, calibrate_fit.c turns times into the figures of a device model. */
#ifndef PCCL_TOOLS_CALIBRATE_H
#define PCCL_TOOLS_CALIBRATE_H

#include <stdbool.h>

#include <polyccl/plan.h>
#include <polyccl/topology.h>

enum { PCCL_CALIBRATE_HOPS = 64, PCCL_CALIBRATE_STEPS = 64, PCCL_CALIBRATE_BYTES = 64 };

/* Two ranks; times in seconds of the slowest rank. */
typedef struct pccl_calibration {
  int sizes;
  uint64_t bytes[POLYCCL_MAX_RATES];
  double copies[2];                                       /* calls of one local copy, of 1 + STEPS, of BYTES each */
  double hops[POLYCCL_PROTOCOL_COUNT];                    /* a message there and back, HOPS in all */
  double send[POLYCCL_PROTOCOL_COUNT][POLYCCL_MAX_RATES]; /* from one rank to the other */
  double reduce[POLYCCL_MAX_RATES];                       /* the same, added to what the other has */
  double forward[POLYCCL_MAX_RATES];                      /* to the other rank, which adds its own and sends it back */
  double local[POLYCCL_MAX_RATES];                        /* copied within each rank, both at once */
} pccl_calibration;

/* Each rank copies its input to its output `copies` times. */
polyccl_result pccl_calibrate_copies(int copies, polyccl_plan **plan);
/* A chunk goes between two ranks PCCL_CALIBRATE_HOPS times. */
polyccl_result pccl_calibrate_hops(polyccl_protocol protocol, polyccl_plan **plan);
/* Rank 0's block to rank 1 (sendrecv), or rank 0's added to rank 1's (reduce). */
polyccl_result pccl_calibrate_transfer(polyccl_protocol protocol, bool reduces, polyccl_plan **plan);

/* Rank 0's block to rank 1 and, with rank 1's added, back, in one step there. */
polyccl_result pccl_calibrate_return(polyccl_plan **plan);

/* Sets the figures of topology's only model, so that simulated times of these plans are the measured ones. */
polyccl_result pccl_calibrate_fit(const pccl_calibration *measured, polyccl_topology *topology);

#endif
