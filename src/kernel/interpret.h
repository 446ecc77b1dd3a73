/* The interpreter kernel: it reads the steps of any plan from a table. Generated kernels are compared with it. */
#ifndef PCCL_KERNEL_INTERPRET_H
#define PCCL_KERNEL_INTERPRET_H

#include "kernel/tables.h"

PCCL_FN int pccl_k_waits_ended(const pccl_k_call *c, const pccl_k_work *work, const pccl_k_step *s, uint64_t batch) {
  for (int i = 0; i < s->waits; i++) {
    const pccl_k_table_wait *wait = &work->wait[s->wait + i];
    uint64_t step = (uint64_t)wait->step;
    if (!pccl_k_ended(c, wait->tb, work->tasks ? step * c->batches + batch : batch * (uint64_t)wait->steps + step)) {
      return 0;
    }
  }
  return 1;
}

static __device__ void pccl_k_dispatch(const pccl_k_work *work, uint32_t number, pccl_k_call *c, pccl_k_block *b) {
  const pccl_k_table_block *block = &work->block[number];
  uint64_t steps = (uint64_t)block->steps, batches = c->batches;
  for (uint64_t i = 0; i < steps * batches; i++) {
    uint64_t batch = work->tasks ? i % batches : i / steps;
    pccl_k_step s = work->step[(uint64_t)block->step + (work->tasks ? i / batches : i % steps)];
    PCCL_K_STEP(i, pccl_k_waits_ended(c, work, &s, batch), s.op, s.recv, s.send, s.src_buffer, (uint64_t)s.src,
                s.dst_buffer, (uint64_t)s.dst, (uint64_t)s.chunks, work->addends + s.addends, s.every)
  }
  PCCL_K_END
}

#endif
