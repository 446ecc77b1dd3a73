/* Plans and buffers for the executor's tests. */
#ifndef PCCL_TESTS_EXEC_UTIL_H
#define PCCL_TESTS_EXEC_UTIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/polyccl.h>

#include "plan/builder.h"

/* One step after another on the last thread block of the last rank that was begun. */
static inline polyccl_step *add_step(pccl_plan_builder *builder, polyccl_step_op op, int src_buf, int src, int dst_buf,
                                     int dst, int from, int to, int rank) {
  polyccl_step *step = NULL;
  if (pccl_plan_builder_add_step(builder, &step) != POLYCCL_SUCCESS) {
    abort();
  }
  step->op = (uint8_t)op;
  step->src_buf = (uint8_t)src_buf;
  step->dst_buf = (uint8_t)dst_buf;
  step->src = src;
  step->dst = dst;
  step->count = 1;
  step->recv = step->send = -1;
  step->location = -1;
  if ((from >= 0 && pccl_plan_builder_connection(builder, from, rank, 0, &step->recv) != POLYCCL_SUCCESS) ||
      (to >= 0 && pccl_plan_builder_connection(builder, rank, to, 0, &step->send) != POLYCCL_SUCCESS)) {
    abort();
  }
  return step;
}

/* AllReduce on a ring of `ranks`, one chunk per rank, one thread block. */
static inline polyccl_plan *make_ring(int ranks, bool inplace, polyccl_protocol protocol) {
  polyccl_plan *plan;
  if (polyccl_plan_create(ranks, &plan) != POLYCCL_SUCCESS) {
    abort();
  }
  plan->name = strdup("ring");
  plan->collective = POLYCCL_ALLREDUCE;
  plan->chunks = plan->chunks_out = ranks;
  plan->inplace = inplace;
  plan->protocol = protocol;
  plan->fifo_depth = 2;
  pccl_plan_builder builder = {0};
  int in = POLYCCL_BUF_INPUT, out = inplace ? in : POLYCCL_BUF_OUTPUT;
  for (int r = 0; r < ranks; r++) {
    if (!pccl_vec_push(&builder.rank, (polyccl_plan_rank){.input = ranks, .output = ranks}) ||
        pccl_plan_builder_add_tb(&builder, r) != POLYCCL_SUCCESS) {
      abort();
    }
    int next = (r + 1) % ranks, before = (r + ranks - 1) % ranks;
    if (ranks == 1) {
      if (!inplace) {
        add_step(&builder, POLYCCL_STEP_COPY, in, 0, out, 0, -1, -1, r);
      }
      continue;
    }
    add_step(&builder, POLYCCL_STEP_SEND, in, r, 0, 0, -1, next, r);
    for (int s = 1; s < ranks - 1; s++) {
      int c = (r + ranks - s) % ranks;
      add_step(&builder, POLYCCL_STEP_RRS, in, c, 0, 0, before, next, r);
    }
    int c = (r + 1) % ranks;
    add_step(&builder, POLYCCL_STEP_RRCS, in, c, out, c, before, next, r);
    for (int s = 0; s < ranks - 2; s++) {
      c = (r + ranks - s) % ranks;
      add_step(&builder, POLYCCL_STEP_RCS, 0, 0, out, c, before, next, r);
    }
    c = (r + 2) % ranks;
    add_step(&builder, POLYCCL_STEP_RECV, 0, 0, out, c, before, -1, r);
  }
  pccl_plan_builder_finish(&builder, plan);
  pccl_plan_builder_free(&builder);
  return plan;
}

/* AllReduce where everyone sends all to everyone, a thread block per peer and one that reduces, in the order of the
 * ranks. */
static inline polyccl_plan *make_oneshot(int ranks, int chunks, bool inplace, polyccl_protocol protocol,
                                         polyccl_loop_order order) {
  polyccl_plan *plan;
  if (polyccl_plan_create(ranks, &plan) != POLYCCL_SUCCESS) {
    abort();
  }
  plan->name = strdup("oneshot");
  plan->collective = POLYCCL_ALLREDUCE;
  plan->chunks = plan->chunks_out = chunks;
  plan->inplace = inplace;
  plan->protocol = protocol;
  plan->order = order;
  plan->fifo_depth = 1;
  pccl_plan_builder builder = {0};
  int in = POLYCCL_BUF_INPUT, out = inplace ? in : POLYCCL_BUF_OUTPUT, scratch = POLYCCL_BUF_SCRATCH;
  for (int r = 0; r < ranks; r++) {
    if (!pccl_vec_push(&builder.rank,
                       (polyccl_plan_rank){.input = chunks, .output = chunks, .scratch = inplace ? chunks : 0})) {
      abort();
    }
    int reducer = ranks - 1, source = inplace ? scratch : in;
    for (int q = 0; q < ranks; q++) {
      if (q != r) {
        if (pccl_plan_builder_add_tb(&builder, r) != POLYCCL_SUCCESS) {
          abort();
        }
        polyccl_step *send = add_step(&builder, POLYCCL_STEP_SEND, source, 0, 0, 0, -1, q, r);
        send->count = chunks;
        if (inplace && pccl_plan_builder_add_wait(&builder, reducer, 0) != POLYCCL_SUCCESS) {
          abort();
        }
      }
    }
    if (pccl_plan_builder_add_tb(&builder, r) != POLYCCL_SUCCESS) {
      abort();
    }
    if (inplace) {
      add_step(&builder, POLYCCL_STEP_COPY, in, 0, scratch, 0, -1, -1, r)->count = chunks;
    }
    int have = source;
    for (int q = 0; q < ranks; q++) {
      if (q != r) {
        add_step(&builder, POLYCCL_STEP_RRC, have, 0, out, 0, q, -1, r)->count = chunks;
        have = out;
      }
    }
    if (ranks == 1 && !inplace) {
      add_step(&builder, POLYCCL_STEP_COPY, in, 0, out, 0, -1, -1, r)->count = chunks;
    }
  }
  pccl_plan_builder_finish(&builder, plan);
  pccl_plan_builder_free(&builder);
  return plan;
}

#endif
