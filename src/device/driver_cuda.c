/* CUDA through its driver, loaded at run time. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/options.h"
#include "base/vec.h"
#include "device/driver.h"
#include "device/driver_api.h"

#define MEMBER(member, name, arguments) pccl_cu_result(*member) arguments;
static struct { PCCL_CU_FUNCTIONS(MEMBER) } cu;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static void *library;

struct pccl_gpu_device {
  pccl_cu_device number;
  pccl_cu_context context;
  pccl_cu_stream stream;
  pccl_cu_event event[2];
  void *flag; /* host memory */
  int multiprocessors;
  char name[128];
};

static polyccl_result failed(const char *what, pccl_cu_result error) {
  const char *name = NULL, *text = NULL;
  cu.error_name(error, &name);
  cu.error_text(error, &text);
  return pccl_fail(POLYCCL_ERROR_SYSTEM, "CUDA: %s: %s (%s)", what, text != NULL ? text : "unknown error",
                   name != NULL ? name : "no name");
}

#define CU_TRY(what, call)                 \
  do {                                     \
    pccl_cu_result cu_try_error = (call);  \
    if (cu_try_error != 0) {               \
      return failed((what), cu_try_error); \
    }                                      \
  } while (0)

static polyccl_result load_library(void) {
  static const struct {
    const char *name;
    void **at;
  } functions[] = {
#define ROW(member, name, arguments) {#name, (void **)(void *)&cu.member},
      PCCL_CU_FUNCTIONS(ROW)};
  const char *path = pccl_option("POLYCCL_CUDA_DRIVER");
  void *opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (opened == NULL) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "no CUDA driver here: %s", dlerror());
  }
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    *functions[i].at = dlsym(opened, functions[i].name);
    if (*functions[i].at == NULL) {
      dlclose(opened);
      return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "%s: the CUDA driver is too old: it has no %s", path,
                       functions[i].name);
    }
  }
  pccl_cu_result error = cu.init(0);
  if (error != 0) {
    dlclose(opened);
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "no CUDA device can be used: cuInit says %d", error);
  }
  library = opened; /* for the rest of the process: drivers do not like to be unloaded */
  return POLYCCL_SUCCESS;
}

static polyccl_result ensure_library(void) {
  pthread_mutex_lock(&loading);
  polyccl_result result = library != NULL ? POLYCCL_SUCCESS : load_library();
  pthread_mutex_unlock(&loading);
  return result;
}

static void cuda_close(pccl_gpu_device *d) {
  if (d == NULL) {
    return;
  }
  if (d->context != NULL) {
    cu.set_current(d->context);
    for (int i = 0; i < 2; i++) {
      if (d->event[i] != NULL) {
        cu.event_destroy(d->event[i]);
      }
    }
    if (d->stream != NULL) {
      cu.stream_destroy(d->stream);
    }
    if (d->flag != NULL) {
      cu.host_free(d->flag);
    }
    cu.release(d->number);
  }
  free(d);
}

static polyccl_result open_parts(pccl_gpu_device *d) {
  int cooperative = 0;
  CU_TRY("device name", cu.device_name(d->name, (int)sizeof d->name, d->number));
  CU_TRY("device attribute", cu.attribute(&d->multiprocessors, PCCL_CU_ATTRIBUTE_MULTIPROCESSORS, d->number));
  CU_TRY("device attribute", cu.attribute(&cooperative, PCCL_CU_ATTRIBUTE_COOPERATIVE, d->number));
  if (!cooperative) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "%s cannot launch cooperatively", d->name);
  }
  CU_TRY("context", cu.retain(&d->context, d->number));
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("stream", cu.stream_create(&d->stream, PCCL_CU_STREAM_NON_BLOCKING));
  CU_TRY("event", cu.event_create(&d->event[0], 0));
  CU_TRY("event", cu.event_create(&d->event[1], 0));
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_open(int number, pccl_gpu_device **device) {
  PCCL_TRY(ensure_library());
  int devices = 0;
  CU_TRY("device count", cu.device_count(&devices));
  if (number < 0 || number >= devices) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "no CUDA device %d: there are %d", number, devices);
  }
  pccl_gpu_device *d = pccl_zeroed(1, sizeof *d);
  if (d == NULL) {
    return pccl_no_memory("a device");
  }
  pccl_cu_result error = cu.device_get(&d->number, number);
  polyccl_result result = error != 0 ? failed("device", error) : open_parts(d);
  if (result != POLYCCL_SUCCESS) {
    cuda_close(d);
    return result;
  }
  *device = d;
  return POLYCCL_SUCCESS;
}

static const char *cuda_name(const pccl_gpu_device *d) { return d->name; }
static int cuda_multiprocessors(const pccl_gpu_device *d) { return d->multiprocessors; }

/* ---- memory ---- */

static pccl_cu_address address(const void *at) { return (pccl_cu_address)(uintptr_t)at; }

static polyccl_result cuda_alloc(pccl_gpu_device *d, size_t bytes, void **at) {
  pccl_cu_address a;
  CU_TRY("context", cu.set_current(d->context));
  pccl_cu_result error = cu.mem_alloc(&a, bytes > 0 ? bytes : 1);
  if (error != 0) {
    failed("memory", error);
    return pccl_fail(POLYCCL_ERROR_MEMORY, "%s has no %zu bytes left", d->name, bytes);
  }
  *at = (void *)(uintptr_t)a;
  return POLYCCL_SUCCESS;
}

static void cuda_release(pccl_gpu_device *d, void *at) {
  if (at != NULL && cu.set_current(d->context) == 0) {
    cu.mem_free(address(at));
  }
}

static polyccl_result cuda_write(pccl_gpu_device *d, void *at, const void *from, size_t bytes) {
  CU_TRY("context", cu.set_current(d->context));
  /* In the queue: a copy outside of it may return before it has arrived. */
  CU_TRY("copy to the device", bytes > 0 ? cu.copy_in(address(at), from, bytes, d->stream) : 0);
  CU_TRY("queue", cu.stream_wait(d->stream));
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_read(pccl_gpu_device *d, void *to, const void *at, size_t bytes) {
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("queue", cu.stream_wait(d->stream));
  CU_TRY("copy from the device", bytes > 0 ? cu.copy_out(to, address(at), bytes) : 0);
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_zero(pccl_gpu_device *d, void *at, size_t bytes) {
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("clear", bytes > 0 ? cu.set_bytes(address(at), 0, bytes, d->stream) : 0);
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_flag(pccl_gpu_device *d, uint64_t **here, void **there) {
  CU_TRY("context", cu.set_current(d->context));
  if (d->flag == NULL) {
    CU_TRY("host memory", cu.host_alloc(&d->flag, 4096, PCCL_CU_HOST_MAPPED));
  }
  pccl_cu_address a;
  CU_TRY("host memory", cu.host_address(&a, d->flag, 0));
  *here = d->flag;
  *there = (void *)(uintptr_t)a;
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_share(pccl_gpu_device *d, void *at, pccl_gpu_handle *handle) {
  _Static_assert(sizeof(pccl_cu_handle) == sizeof *handle, "handles are as large as CUDA's");
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("memory for other processes", cu.ipc_handle((pccl_cu_handle *)(void *)handle, address(at)));
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_attach(pccl_gpu_device *d, const pccl_gpu_handle *handle, void **at) {
  pccl_cu_address a;
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("memory of another process", cu.ipc_open(&a, *(const pccl_cu_handle *)(const void *)handle, PCCL_CU_IPC_LAZY));
  *at = (void *)(uintptr_t)a;
  return POLYCCL_SUCCESS;
}

static void cuda_detach(pccl_gpu_device *d, void *at) {
  if (at != NULL && cu.set_current(d->context) == 0) {
    cu.ipc_close(address(at));
  }
}

/* ---- code ---- */

static polyccl_result cuda_load(pccl_gpu_device *d, const char *path, pccl_gpu_module **module) {
  pccl_cu_module m;
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY(path, cu.module_load(&m, path));
  *module = (pccl_gpu_module *)m;
  return POLYCCL_SUCCESS;
}

static void cuda_unload(pccl_gpu_device *d, pccl_gpu_module *module) {
  if (module != NULL && cu.set_current(d->context) == 0) {
    cu.module_unload((pccl_cu_module)module);
  }
}

static polyccl_result cuda_function(pccl_gpu_module *module, const char *name, pccl_gpu_function **function) {
  pccl_cu_function f;
  CU_TRY(name, cu.module_function(&f, (pccl_cu_module)module, name));
  *function = (pccl_gpu_function *)f;
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_symbol(pccl_gpu_module *module, const char *name, void *to, size_t bytes) {
  pccl_cu_address a;
  size_t size;
  CU_TRY(name, cu.module_global(&a, &size, (pccl_cu_module)module, name));
  if (size != bytes) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s has %zu bytes, not %zu", name, size, bytes);
  }
  CU_TRY(name, cu.copy_out(to, a, bytes));
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_resident(pccl_gpu_function *function, int threads, int *blocks) {
  int n = 0;
  CU_TRY("occupancy", cu.occupancy(&n, (pccl_cu_function)function, threads, 0));
  *blocks = n;
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_launch(pccl_gpu_device *d, pccl_gpu_function *function, int blocks, int threads, void *work,
                                  bool cooperative) {
  void *arguments[] = {&work};
  pccl_cu_function f = (pccl_cu_function)function;
  unsigned b = (unsigned)blocks, t = (unsigned)threads;
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("launch", cooperative ? cu.launch_cooperative(f, b, 1, 1, t, 1, 1, 0, d->stream, arguments)
                               : cu.launch(f, b, 1, 1, t, 1, 1, 0, d->stream, arguments, NULL));
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_idle(pccl_gpu_device *d, bool *idle) {
  CU_TRY("context", cu.set_current(d->context));
  pccl_cu_result error = cu.stream_query(d->stream);
  if (error != 0 && error != PCCL_CU_NOT_READY) {
    return failed("kernel", error);
  }
  *idle = error == 0;
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_mark(pccl_gpu_device *d, int which) {
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("event", cu.event_record(d->event[which], d->stream));
  return POLYCCL_SUCCESS;
}

static polyccl_result cuda_between(pccl_gpu_device *d, double *seconds) {
  float milliseconds;
  CU_TRY("context", cu.set_current(d->context));
  CU_TRY("event", cu.event_elapsed(&milliseconds, d->event[0], d->event[1]));
  *seconds = 1e-3 * (double)milliseconds;
  return POLYCCL_SUCCESS;
}

const pccl_gpu_driver pccl_cuda_driver = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .device_name = cuda_name,
    .multiprocessors = cuda_multiprocessors,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .write = cuda_write,
    .read = cuda_read,
    .zero = cuda_zero,
    .flag = cuda_flag,
    .share = cuda_share,
    .attach = cuda_attach,
    .detach = cuda_detach,
    .load = cuda_load,
    .unload = cuda_unload,
    .function = cuda_function,
    .symbol = cuda_symbol,
    .resident = cuda_resident,
    .launch = cuda_launch,
    .idle = cuda_idle,
    .mark = cuda_mark,
    .between = cuda_between,
};
