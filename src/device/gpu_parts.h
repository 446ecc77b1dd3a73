/* What gpu_open.c builds and gpu_call.c uses. */
#ifndef PCCL_DEVICE_GPU_PARTS_H
#define PCCL_DEVICE_GPU_PARTS_H

#include "device/gpu.h"
#include "kernel/tables.h"

struct pccl_gpu {
  const pccl_gpu_driver *driver;
  pccl_gpu_device *device;
  const polyccl_plan *plan;
  pccl_gpu_options options;
  bool uneven, reduces, interpreter;
  int processes, first, ranks; /* this process's ranks: first .. first + ranks */
  int tbs, most;               /* thread blocks of the launch; that fit */
  int32_t largest;             /* chunks of the largest message */
  size_t depth, slot_bytes;

  /* Slots and counters of connections: a process's arena holds the tails and slots of what its ranks receive and the
   * heads of what they send. Offsets are the same for all. */
  struct place {
    size_t tail, slots, head;
  } * place;          /* [connections] */
  void **arena;       /* [processes]; own, and others' attached */
  uint64_t *messages; /* [connections] an upper bound since old flags were wiped out */

  pccl_gpu_module *module;
  pccl_gpu_function *kernel;
  uint64_t *stop_here;
  void *stop_there;

  /* Device memory. */
  pccl_k_end *ends;     /* of each rank: sends, then receives */
  pccl_k_block *blocks; /* [tbs] */
  pccl_k_call *calls;   /* [ranks] */
  pccl_k_place *places; /* [tbs] */
  pccl_k_work *works;   /* the launch's */
  pccl_k_table_block *table_blocks;
  pccl_k_step *table_steps;
  pccl_k_table_wait *table_waits;
  uint64_t *table_addends;
  char *scratch;
  size_t scratch_bytes;

  pccl_k_call *call; /* [ranks] here: what of a call does not change */
  pccl_k_work work;  /* here */
  bool opened, broken;
};

static inline int pccl_gpu_process_of(const pccl_gpu *gpu, int rank) {
  return (int)((int64_t)rank * gpu->processes / gpu->plan->ranks);
}

/* Returns when all processes have come here. */
polyccl_result pccl_gpu_meet(pccl_gpu *gpu);

#endif
