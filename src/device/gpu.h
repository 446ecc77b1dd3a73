/* The executor for generated and interpreting kernels: all ranks that this process holds on one device run a call in
 * one cooperative launch. Connections are slots in device memory, found by plain addresses among the ranks of a process
 * and through the driver's handles between processes.
 *
 *   pccl_gpu_open(driver, device, plan, &options, &gpu)     once; all processes together
 *   pccl_gpu_call(gpu, &call)                               any number of times; all processes the same calls
 *   pccl_gpu_close(gpu)
 *
 * A call that does not end within its time is told to stop; after that the executor is of no more use. */
#ifndef PCCL_DEVICE_GPU_H
#define PCCL_DEVICE_GPU_H

#include <polyccl/plan.h>

#include "device/driver.h"

typedef struct pccl_gpu pccl_gpu;

typedef struct pccl_gpu_options {
  const char *image; /* what the target's compiler made of polyccl build's output (for CUDA: a cubin or fatbin) */
  int threads;       /* of a thread block; 0: 256 */
  size_t slot_bytes; /* of a connection's every slot; 0: 256 KiB */
  double timeout;    /* seconds a call may take; 0: POLYCCL_TIMEOUT */
  /* Several processes: rank r is in process r * processes / ranks. exchange() gathers `bytes` of every process, in
   * order, and is called by all of them alike. */
  int process, processes; /* processes 0: one */
  polyccl_result (*exchange)(void *context, const void *mine, size_t bytes, void *all);
  void *context;
} pccl_gpu_options;

typedef struct pccl_gpu_call_args {
  size_t count; /* elements of a block (docs/plan.md) */
  polyccl_dtype dtype;
  polyccl_redop op;
  void *const *input, *const *output; /* device addresses, by rank; only this process's are used */
  int repeats;                        /* 0: 1; back to back, for measuring */
  double *seconds;                    /* NULL, or the device's time for all of them */
} pccl_gpu_call_args;

/* UNSUPPORTED: the plan's thread blocks do not fit on the device at once. INVALID: the image is not for this plan. */
polyccl_result pccl_gpu_open(const pccl_gpu_driver *driver, pccl_gpu_device *device, const polyccl_plan *plan,
                             const pccl_gpu_options *options, pccl_gpu **gpu);
polyccl_result pccl_gpu_call(pccl_gpu *gpu, const pccl_gpu_call_args *args);
void pccl_gpu_close(pccl_gpu *gpu);

/* Thread blocks of this process's launch, and the most that the device holds at once. */
void pccl_gpu_blocks(const pccl_gpu *gpu, int *blocks, int *most);

#endif
