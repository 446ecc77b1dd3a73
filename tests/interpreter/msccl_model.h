/* What a file is on its way through the model of the executors: msccl.c reads it, msccl_run.c makes the plan that the
 * executor runs. */
#ifndef PCCL_TESTS_INTERPRETER_MSCCL_MODEL_H
#define PCCL_TESTS_INTERPRETER_MSCCL_MODEL_H

#include <stdlib.h>

#include "base/vec.h"
#include "msccl.h"
#include "msccl_tag.h"

typedef struct transfer { /* what is left of a step, or of several reductions */
  int op;
  int src_buf, src, dst_buf, dst, count;
  int wait, waits, reduction, reductions;
  bool announces;
  int number; /* of its announcement */
  int last;   /* the last plan step that it becomes, in its thread block */
} transfer;

typedef struct block {
  bool exists;
  int send, recv, channel;
  int transfer, transfers; /* in loader.transfer */
} block;

typedef PCCL_VEC(transfer) transfers;
typedef PCCL_VEC(polyccl_wait) waits;
typedef PCCL_VEC(int) numbers;

typedef struct loader {
  const msccl_runtime *runtime;
  bool single;
  int rank;
  /* <algo> */
  int per_loop, ranks, channels, in_times, out_times, times;
  polyccl_plan head;
  /* <gpu> */
  int inputs, outputs, scratch;
  block *block; /* [max_tbs] */
  int blocks;
  transfers transfer;
  waits wait;
  numbers source; /* of reductions */
  int senders[64], receivers[64];
  /* the plan */
  PCCL_VEC(polyccl_thread_block) tb;
  PCCL_VEC(polyccl_step) step;
  waits plan_wait;
  PCCL_VEC(polyccl_connection) connection;
  PCCL_VEC(polyccl_plan_rank) plan_rank;
  msccl_cursor cursor;
} loader;

#define refuse(l, ...) msccl_refuse(&(l)->cursor, __VA_ARGS__)

/* The plan steps of the rank that has been read; then, after all ranks, the plan, which takes their arrays. */
bool msccl_add_rank(loader *l);
polyccl_plan *msccl_make_plan(loader *l, const polyccl_plan *meant);

#endif
