/* The entry of a GPU kernel. One cooperative launch executes the plan's thread blocks of all ranks on this device. They
 * wait for one another, so all must be resident at once. The file defines pccl_k_dispatch() before this header. */
#ifndef PCCL_KERNEL_ENTRY_H
#define PCCL_KERNEL_ENTRY_H

#include "kernel/tables.h"

extern "C" __global__ void pccl_k_kernel(const pccl_k_work *work) {
  const pccl_k_place *place = &work->place[blockIdx.x];
  pccl_k_call *c = &work->calls[place->call];
  pccl_k_dispatch(work, place->number, c, &c->block[place->tb]);
}

#endif
