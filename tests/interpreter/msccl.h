/* What the executors of MSCCL XML make of a file: a model of their parsers and of the loop that runs what they keep,
 * written from how they behave, with none of the library's code. It shares nothing with the library's reader, which
 * takes more than they do and means well by it.
 *
 * What the model holds against a file:
 * - Attributes that an executor asks for must be there; limits; a node of XML that it cannot store.
 * - nops are dropped. Their waits go to the next step, which must have one of its own, or the file is refused.
 * - A step announces itself if it has hasdep, by a number: it counts one for each step, one more for each further wait,
 *   one more for each further reduction of a chain. A wait for number n ends with the first announcement of n or more.
 * - Reductions one after another with the same destination and source buffer and no wait are one, at the count of the
 *   last, until one has hasdep.
 * - A chunk is the count of the call, times the ranks for some collectives, divided by nchunksperloop. */
#ifndef PCCL_TESTS_INTERPRETER_MSCCL_H
#define PCCL_TESTS_INTERPRETER_MSCCL_H

#include <stdbool.h>

#include <polyccl/plan.h>

typedef struct msccl_runtime {
  const char *name;
  int max_tbs, max_steps, max_nodes, max_channels, max_attributes;
  int depth[POLYCCL_PROTOCOL_COUNT];
  bool placement;  /* asks for minBytes, maxBytes and outofplace */
  bool fused;      /* has rcs, rrc, rrcs, rrs */
  bool has_custom; /* and calls the rest reduce_scatter; else reducescatter */
  bool has_gather; /* gather and scatter */
} msccl_runtime;

extern const msccl_runtime msccl_microsoft, msccl_azure, msccl_rccl;

/* The plan that the executor runs on all ranks, for a call with `root`; custom: what it must compute is taken from
 * `meant`. `single`: messages are large, so that each step of several chunks is as many steps of one. False: it refuses
 * the file or would hang or run wild; *why says so. */
bool msccl_load(const msccl_runtime *runtime, const char *text, const polyccl_plan *meant, bool single,
                polyccl_plan **plan, char *why, size_t size);

#endif
