/* What an executor needs of a GPU's driver, as one flat struct of functions. An adaptor is loaded when it is asked for:
 * PolyCCL is built and runs without CUDA, and finds libcuda.so.1 where there is one.
 *
 * Memory addresses are the device's, never to be followed here. Work is queued in one stream of the device, in order.
 */
#ifndef PCCL_DEVICE_DRIVER_H
#define PCCL_DEVICE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <polyccl/types.h>

typedef struct pccl_gpu_device pccl_gpu_device;     /* an open device, of one process */
typedef struct pccl_gpu_module pccl_gpu_module;     /* loaded code */
typedef struct pccl_gpu_function pccl_gpu_function; /* a kernel; it takes one address */

/* Names memory to other processes of this machine. */
typedef struct pccl_gpu_handle {
  unsigned char bytes[64];
} pccl_gpu_handle;

typedef struct pccl_gpu_driver {
  const char *name;
  /* UNSUPPORTED, with the reason: there is no driver, or no device with this number. */
  polyccl_result (*open)(int number, pccl_gpu_device **device);
  void (*close)(pccl_gpu_device *device);
  const char *(*device_name)(const pccl_gpu_device *device);
  int (*multiprocessors)(const pccl_gpu_device *device);

  polyccl_result (*alloc)(pccl_gpu_device *device, size_t bytes, void **at);
  void (*release)(pccl_gpu_device *device, void *at);
  /* These wait for what is queued before. */
  polyccl_result (*write)(pccl_gpu_device *device, void *at, const void *from, size_t bytes);
  polyccl_result (*read)(pccl_gpu_device *device, void *to, const void *at, size_t bytes);
  /* Queued. */
  polyccl_result (*zero)(pccl_gpu_device *device, void *at, size_t bytes);
  /* A word that both see at once: kernels at *there, the host at *here. */
  polyccl_result (*flag)(pccl_gpu_device *device, uint64_t **here, void **there);

  polyccl_result (*share)(pccl_gpu_device *device, void *at, pccl_gpu_handle *handle); /* `at` came from alloc */
  polyccl_result (*attach)(pccl_gpu_device *device, const pccl_gpu_handle *handle, void **at);
  void (*detach)(pccl_gpu_device *device, void *at);

  polyccl_result (*load)(pccl_gpu_device *device, const char *path, pccl_gpu_module **module);
  void (*unload)(pccl_gpu_device *device, pccl_gpu_module *module);
  polyccl_result (*function)(pccl_gpu_module *module, const char *name, pccl_gpu_function **function);
  polyccl_result (*symbol)(pccl_gpu_module *module, const char *name, void *to, size_t bytes); /* a copy of it */
  /* Thread blocks of `threads` threads that a multiprocessor holds at once. */
  polyccl_result (*resident)(pccl_gpu_function *function, int threads, int *blocks);
  /* Cooperative: all thread blocks are resident at once, or the launch fails. */
  polyccl_result (*launch)(pccl_gpu_device *device, pccl_gpu_function *function, int blocks, int threads, void *work,
                           bool cooperative);
  polyccl_result (*idle)(pccl_gpu_device *device, bool *idle); /* nothing is queued or running */
  /* Seconds of device time between two marks; the queue is idle. */
  polyccl_result (*mark)(pccl_gpu_device *device, int which); /* 0, 1: queued */
  polyccl_result (*between)(pccl_gpu_device *device, double *seconds);
} pccl_gpu_driver;

/* libcuda.so.1, or the library that POLYCCL_CUDA_DRIVER names. */
extern const pccl_gpu_driver pccl_cuda_driver;

#endif
