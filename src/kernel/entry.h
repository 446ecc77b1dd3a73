/* Where a GPU enters: one cooperative launch, whose thread blocks are the plan's of the ranks on this device. All of
 * them must be resident at once, since they wait for one another. A generated file defines pccl_k_dispatch() before. */
#ifndef PCCL_KERNEL_ENTRY_H
#define PCCL_KERNEL_ENTRY_H

#include "kernel/tables.h"

extern "C" __global__ void pccl_k_kernel(const pccl_k_work *work) {
  const pccl_k_place *place = &work->place[blockIdx.x];
  pccl_k_call *c = &work->calls[place->call];
  pccl_k_dispatch(work, place->number, c, &c->block[place->tb]);
}

#endif
