/* Compares src/device/driver_api.h with CUDA's own header. It is compiled where there is one and never run. */
#include <cuda.h>

#define PCCL_CU_TYPES
typedef CUresult pccl_cu_result;
typedef CUdevice pccl_cu_device;
typedef CUdevice_attribute pccl_cu_enum;
typedef CUdeviceptr pccl_cu_address;
typedef CUcontext pccl_cu_context;
typedef CUmodule pccl_cu_module;
typedef CUfunction pccl_cu_function;
typedef CUstream pccl_cu_stream;
typedef CUevent pccl_cu_event;
typedef CUipcMemHandle pccl_cu_handle;
#undef cuEventElapsedTime /* since CUDA 12.8 another name for a second version of the same type */
CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to);

#include "device/driver_api.h"

#define SAME(member, name, arguments)             \
  typedef pccl_cu_result type_##member arguments; \
  _Static_assert(__builtin_types_compatible_p(__typeof__(name), type_##member), #name);
PCCL_CU_FUNCTIONS(SAME)

_Static_assert(sizeof(CUipcMemHandle) == 64 && sizeof(CUdeviceptr) == sizeof(unsigned long long) &&
                   sizeof(CUresult) == sizeof(int) && sizeof(CUdevice) == sizeof(int) &&
                   sizeof(CUdevice_attribute) == sizeof(int),
               "types");
_Static_assert((int)CUDA_ERROR_NOT_READY == PCCL_CU_NOT_READY &&
                   (int)CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT == PCCL_CU_ATTRIBUTE_MULTIPROCESSORS &&
                   (int)CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH == PCCL_CU_ATTRIBUTE_COOPERATIVE &&
                   CU_MEMHOSTALLOC_DEVICEMAP == PCCL_CU_HOST_MAPPED &&
                   (int)CU_STREAM_NON_BLOCKING == PCCL_CU_STREAM_NON_BLOCKING &&
                   (int)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS == PCCL_CU_IPC_LAZY,
               "values");
