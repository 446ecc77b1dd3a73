/* The part of the CUDA driver's interface that PolyCCL calls, by the names and types that its documentation gives them
 * (CUDA Driver API reference), so that no CUDA is needed to build. tests/gpu/driver_types.c holds it against cuda.h
 * where there is one. X(member, exported name, arguments). */
#ifndef PCCL_DEVICE_DRIVER_API_H
#define PCCL_DEVICE_DRIVER_API_H

#include <stddef.h>

#ifndef PCCL_CU_TYPES
#define PCCL_CU_TYPES
typedef int pccl_cu_result, pccl_cu_device, pccl_cu_enum;
typedef unsigned long long pccl_cu_address;
typedef struct pccl_cu_context *pccl_cu_context;
typedef struct pccl_cu_module *pccl_cu_module;
typedef struct pccl_cu_function *pccl_cu_function;
typedef struct pccl_cu_stream *pccl_cu_stream;
typedef struct pccl_cu_event *pccl_cu_event;
typedef struct pccl_cu_handle {
  char reserved[64];
} pccl_cu_handle;
#endif

enum {
  PCCL_CU_NOT_READY = 600,
  PCCL_CU_ATTRIBUTE_MULTIPROCESSORS = 16,
  PCCL_CU_ATTRIBUTE_COOPERATIVE = 95,
  PCCL_CU_HOST_MAPPED = 2,
  PCCL_CU_STREAM_NON_BLOCKING = 1,
  PCCL_CU_IPC_LAZY = 1
};

#define PCCL_CU_FUNCTIONS(X)                                                                                      \
  X(init, cuInit, (unsigned flags))                                                                               \
  X(error_name, cuGetErrorName, (pccl_cu_result error, const char **name))                                        \
  X(error_text, cuGetErrorString, (pccl_cu_result error, const char **text))                                      \
  X(device_get, cuDeviceGet, (pccl_cu_device * device, int ordinal))                                              \
  X(device_count, cuDeviceGetCount, (int *count))                                                                 \
  X(device_name, cuDeviceGetName, (char *name, int length, pccl_cu_device device))                                \
  X(attribute, cuDeviceGetAttribute, (int *value, pccl_cu_enum attribute, pccl_cu_device device))                 \
  X(retain, cuDevicePrimaryCtxRetain, (pccl_cu_context * context, pccl_cu_device device))                         \
  X(release, cuDevicePrimaryCtxRelease_v2, (pccl_cu_device device))                                               \
  X(set_current, cuCtxSetCurrent, (pccl_cu_context context))                                                      \
  X(mem_alloc, cuMemAlloc_v2, (pccl_cu_address * at, size_t bytes))                                               \
  X(mem_free, cuMemFree_v2, (pccl_cu_address at))                                                                 \
  X(copy_in, cuMemcpyHtoDAsync_v2, (pccl_cu_address at, const void *from, size_t bytes, pccl_cu_stream stream))   \
  X(copy_out, cuMemcpyDtoH_v2, (void *to, pccl_cu_address at, size_t bytes))                                      \
  X(set_bytes, cuMemsetD8Async, (pccl_cu_address at, unsigned char value, size_t bytes, pccl_cu_stream stream))   \
  X(host_alloc, cuMemHostAlloc, (void **at, size_t bytes, unsigned flags))                                        \
  X(host_address, cuMemHostGetDevicePointer_v2, (pccl_cu_address * at, void *here, unsigned flags))               \
  X(host_free, cuMemFreeHost, (void *at))                                                                         \
  X(ipc_handle, cuIpcGetMemHandle, (pccl_cu_handle * handle, pccl_cu_address at))                                 \
  X(ipc_open, cuIpcOpenMemHandle_v2, (pccl_cu_address * at, pccl_cu_handle handle, unsigned flags))               \
  X(ipc_close, cuIpcCloseMemHandle, (pccl_cu_address at))                                                         \
  X(module_load, cuModuleLoad, (pccl_cu_module * module, const char *path))                                       \
  X(module_unload, cuModuleUnload, (pccl_cu_module module))                                                       \
  X(module_function, cuModuleGetFunction, (pccl_cu_function * function, pccl_cu_module module, const char *name)) \
  X(module_global, cuModuleGetGlobal_v2,                                                                          \
    (pccl_cu_address * at, size_t * bytes, pccl_cu_module module, const char *name))                              \
  X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                       \
    (int *blocks, pccl_cu_function function, int threads, size_t shared))                                         \
  X(launch, cuLaunchKernel,                                                                                       \
    (pccl_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,     \
     unsigned shared, pccl_cu_stream stream, void **arguments, void **extra))                                     \
  X(launch_cooperative, cuLaunchCooperativeKernel,                                                                \
    (pccl_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,     \
     unsigned shared, pccl_cu_stream stream, void **arguments))                                                   \
  X(stream_create, cuStreamCreate, (pccl_cu_stream * stream, unsigned flags))                                     \
  X(stream_destroy, cuStreamDestroy_v2, (pccl_cu_stream stream))                                                  \
  X(stream_query, cuStreamQuery, (pccl_cu_stream stream))                                                         \
  X(stream_wait, cuStreamSynchronize, (pccl_cu_stream stream))                                                    \
  X(event_create, cuEventCreate, (pccl_cu_event * event, unsigned flags))                                         \
  X(event_destroy, cuEventDestroy_v2, (pccl_cu_event event))                                                      \
  X(event_record, cuEventRecord, (pccl_cu_event event, pccl_cu_stream stream))                                    \
  X(event_elapsed, cuEventElapsedTime, (float *milliseconds, pccl_cu_event from, pccl_cu_event to))

#endif
