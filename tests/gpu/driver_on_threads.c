/* A CUDA driver without a GPU. Device memory is ordinary memory, a module is a shared object made of generated source
 * with on_threads.h, and a kernel runs with a pthread for each GPU thread, all thread blocks at once. So the executor's
 * host part and the kernels run together without a device. POLYCCL_CUDA_DRIVER names this library. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device/driver_api.h"

#define EXPORTED(member, name, arguments) __attribute__((visibility("default"))) pccl_cu_result name arguments;
PCCL_CU_FUNCTIONS(EXPORTED)

enum { INVALID = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, MAX_ALLOCATIONS = 1024, STACK = 256 << 10 };

typedef void (*run_fn)(void *kernel, const void *work, unsigned block, unsigned blocks, unsigned thread,
                       unsigned threads, void *shared);

struct pccl_cu_module {
  void *library;
  run_fn run;
};

struct pccl_cu_function {
  struct pccl_cu_module *module;
  void *kernel;
  struct pccl_cu_function *next;
};

struct pccl_cu_event {
  struct timespec at;
};

struct pccl_cu_stream {
  pthread_t thread;
  int launched;
  atomic_int busy;
};

typedef struct block {
  pthread_barrier_t barrier;
  int any[3];
} block; /* on_threads_block */

typedef struct launch {
  struct pccl_cu_stream *stream;
  struct pccl_cu_function *function;
  const void *work;
  unsigned blocks, threads;
  block *block;
} launch;

typedef struct gpu_thread {
  const launch *of;
  unsigned block, thread;
} gpu_thread;

static struct {
  char *at;
  size_t bytes;
  int fd;
} memory[MAX_ALLOCATIONS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pccl_cu_function *functions;

static int environment_number(const char *name, int default_value) {
  const char *value = getenv(name);
  return value != NULL ? atoi(value) : default_value;
}

pccl_cu_result cuInit(unsigned flags) { return flags != 0; }
pccl_cu_result cuGetErrorName(pccl_cu_result error, const char **name) {
  *name = error == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR";
  return 0;
}
pccl_cu_result cuGetErrorString(pccl_cu_result error, const char **text) {
  *text = error == NOT_FOUND ? "named symbol not found" : "the driver on threads refuses the call";
  return 0;
}
pccl_cu_result cuDeviceGetCount(int *count) {
  *count = environment_number("ON_THREADS_DEVICES", 1);
  return 0;
}
pccl_cu_result cuDeviceGet(pccl_cu_device *device, int ordinal) {
  *device = ordinal;
  return 0;
}
pccl_cu_result cuDeviceGetName(char *name, int length, pccl_cu_device device) {
  snprintf(name, (size_t)length, "threads %d", device);
  return 0;
}
pccl_cu_result cuDeviceGetAttribute(int *value, pccl_cu_enum attribute, pccl_cu_device device) {
  (void)device;
  *value = attribute == PCCL_CU_ATTRIBUTE_MULTIPROCESSORS ? environment_number("ON_THREADS_MULTIPROCESSORS", 256) : 1;
  return 0;
}
pccl_cu_result cuDevicePrimaryCtxRetain(pccl_cu_context *context, pccl_cu_device device) {
  (void)device;
  *context = (pccl_cu_context)(void *)&memory;
  return 0;
}
pccl_cu_result cuDevicePrimaryCtxRelease_v2(pccl_cu_device device) { return device < 0; }
pccl_cu_result cuCtxSetCurrent(pccl_cu_context context) { return context == NULL; }

/* ---- memory ---- */

static pccl_cu_result map_memory(int fd, size_t bytes, pccl_cu_address *at) {
  void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    close(fd);
    return OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_ALLOCATIONS; i++) {
    if (memory[i].at == NULL) {
      memory[i].at = mapped;
      memory[i].bytes = bytes;
      memory[i].fd = fd;
      pthread_mutex_unlock(&lock);
      *at = (pccl_cu_address)(uintptr_t)mapped;
      return 0;
    }
  }
  pthread_mutex_unlock(&lock);
  munmap(mapped, bytes);
  close(fd);
  return OUT_OF_MEMORY;
}

static int find_memory(pccl_cu_address at) {
  for (int i = 0; i < MAX_ALLOCATIONS; i++) {
    if (memory[i].at == (char *)(uintptr_t)at) {
      return i;
    }
  }
  return -1;
}

pccl_cu_result cuMemAlloc_v2(pccl_cu_address *at, size_t bytes) {
  int fd = memfd_create("on_threads", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
    return OUT_OF_MEMORY;
  }
  return map_memory(fd, bytes, at);
}

pccl_cu_result cuMemFree_v2(pccl_cu_address at) {
  pthread_mutex_lock(&lock);
  int i = at != 0 ? find_memory(at) : -1;
  if (i >= 0) {
    munmap(memory[i].at, memory[i].bytes);
    close(memory[i].fd);
    memory[i].at = NULL;
  }
  pthread_mutex_unlock(&lock);
  return i < 0;
}

pccl_cu_result cuIpcGetMemHandle(pccl_cu_handle *handle, pccl_cu_address at) {
  pthread_mutex_lock(&lock);
  int i = find_memory(at);
  memset(handle, 0, sizeof *handle);
  if (i >= 0) {
    snprintf(handle->reserved, sizeof handle->reserved, "/proc/%d/fd/%d %zu", (int)getpid(), memory[i].fd,
             memory[i].bytes);
  }
  pthread_mutex_unlock(&lock);
  return i < 0;
}

pccl_cu_result cuIpcOpenMemHandle_v2(pccl_cu_address *at, pccl_cu_handle handle, unsigned flags) {
  (void)flags;
  char path[64];
  size_t bytes;
  if (sscanf(handle.reserved, "%63s %zu", path, &bytes) != 2) {
    return INVALID;
  }
  int fd = open(path, O_RDWR | O_CLOEXEC);
  return fd < 0 ? INVALID : map_memory(fd, bytes, at);
}

pccl_cu_result cuIpcCloseMemHandle(pccl_cu_address at) { return cuMemFree_v2(at); }

pccl_cu_result cuMemcpyDtoH_v2(void *to, pccl_cu_address at, size_t bytes) {
  memcpy(to, (const void *)(uintptr_t)at, bytes);
  return 0;
}

pccl_cu_result cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
  (void)flags;
  *at = calloc(1, bytes);
  return *at == NULL ? OUT_OF_MEMORY : 0;
}

pccl_cu_result cuMemHostGetDevicePointer_v2(pccl_cu_address *at, void *here, unsigned flags) {
  (void)flags;
  *at = (pccl_cu_address)(uintptr_t)here;
  return 0;
}

pccl_cu_result cuMemFreeHost(void *at) {
  free(at);
  return 0;
}

/* ---- code ---- */

pccl_cu_result cuModuleLoad(pccl_cu_module *module, const char *path) {
  struct pccl_cu_module *m = calloc(1, sizeof *m);
  if (m == NULL) {
    return OUT_OF_MEMORY;
  }
  m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  m->run = m->library != NULL ? (run_fn)dlsym(m->library, "on_threads_run") : NULL;
  if (m->run == NULL) {
    fprintf(stderr, "%s: %s\n", path, dlerror());
    free(m);
    return NOT_FOUND;
  }
  *module = m;
  return 0;
}

pccl_cu_result cuModuleUnload(pccl_cu_module module) {
  for (struct pccl_cu_function **at = &functions; *at != NULL;) {
    struct pccl_cu_function *f = *at;
    if (f->module == module) {
      *at = f->next;
      free(f);
    } else {
      at = &f->next;
    }
  }
  dlclose(module->library);
  free(module);
  return 0;
}

pccl_cu_result cuModuleGetFunction(pccl_cu_function *function, pccl_cu_module module, const char *name) {
  struct pccl_cu_function *f = calloc(1, sizeof *f);
  void *kernel = dlsym(module->library, name);
  if (f == NULL || kernel == NULL) {
    free(f);
    return NOT_FOUND;
  }
  *f = (struct pccl_cu_function){module, kernel, functions};
  *function = functions = f;
  return 0;
}

pccl_cu_result cuModuleGetGlobal_v2(pccl_cu_address *at, size_t *bytes, pccl_cu_module module, const char *name) {
  void *symbol = dlsym(module->library, name);
  *at = (pccl_cu_address)(uintptr_t)symbol;
  *bytes = 3 * sizeof(unsigned long long); /* of the only variable that the executor asks for */
  return symbol == NULL ? NOT_FOUND : 0;
}

pccl_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, pccl_cu_function function, int threads,
                                                           size_t shared) {
  (void)function, (void)shared;
  *blocks = threads > 1024 ? 0 : 1;
  return 0;
}

static void *run_gpu_thread(void *argument) {
  const gpu_thread *t = argument;
  const launch *l = t->of;
  l->function->module->run(l->function->kernel, l->work, t->block, l->blocks, t->thread, l->threads,
                           &l->block[t->block]);
  return NULL;
}

static void *run_launch(void *argument) {
  launch *l = argument;
  size_t all = (size_t)l->blocks * l->threads;
  pthread_t *thread = calloc(all, sizeof *thread);
  gpu_thread *mine = calloc(all, sizeof *mine);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  for (size_t i = 0; i < all; i++) {
    mine[i] = (gpu_thread){l, (unsigned)(i / l->threads), (unsigned)(i % l->threads)};
    if (pthread_create(&thread[i], &attributes, run_gpu_thread, &mine[i]) != 0) {
      fprintf(stderr, "cannot start more than %zu threads\n", i);
      _exit(1); /* the threads that run wait for the missing one forever */
    }
  }
  for (size_t i = 0; i < all; i++) {
    pthread_join(thread[i], NULL);
  }
  for (unsigned b = 0; b < l->blocks; b++) {
    pthread_barrier_destroy(&l->block[b].barrier);
  }
  pthread_attr_destroy(&attributes);
  atomic_store(&l->stream->busy, 0);
  free(thread);
  free(mine);
  free(l->block);
  free(l);
  return NULL;
}

pccl_cu_result cuStreamSynchronize(pccl_cu_stream stream) {
  if (stream->launched) {
    pthread_join(stream->thread, NULL);
    stream->launched = 0;
  }
  return 0;
}

pccl_cu_result cuLaunchKernel(pccl_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, unsigned shared, pccl_cu_stream stream, void **arguments,
                              void **extra) {
  (void)gy, (void)gz, (void)by, (void)bz, (void)shared, (void)extra;
  cuStreamSynchronize(stream);
  launch *l = calloc(1, sizeof *l);
  *l = (launch){stream, function, *(void **)arguments[0], gx, bx, calloc(gx, sizeof(block))};
  for (unsigned b = 0; b < gx; b++) {
    pthread_barrier_init(&l->block[b].barrier, NULL, bx);
  }
  atomic_store(&stream->busy, 1);
  stream->launched = 1;
  return pthread_create(&stream->thread, NULL, run_launch, l);
}

pccl_cu_result cuLaunchCooperativeKernel(pccl_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                         unsigned by, unsigned bz, unsigned shared, pccl_cu_stream stream,
                                         void **arguments) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, NULL);
}

pccl_cu_result cuMemsetD8Async(pccl_cu_address at, unsigned char value, size_t bytes, pccl_cu_stream stream) {
  cuStreamSynchronize(stream);
  memset((void *)(uintptr_t)at, value, bytes);
  return 0;
}

pccl_cu_result cuMemcpyHtoDAsync_v2(pccl_cu_address at, const void *from, size_t bytes, pccl_cu_stream stream) {
  cuStreamSynchronize(stream);
  memcpy((void *)(uintptr_t)at, from, bytes);
  return 0;
}

pccl_cu_result cuStreamCreate(pccl_cu_stream *stream, unsigned flags) {
  (void)flags;
  *stream = calloc(1, sizeof **stream);
  return *stream == NULL ? OUT_OF_MEMORY : 0;
}

pccl_cu_result cuStreamDestroy_v2(pccl_cu_stream stream) {
  cuStreamSynchronize(stream);
  free(stream);
  return 0;
}

pccl_cu_result cuStreamQuery(pccl_cu_stream stream) {
  return atomic_load(&stream->busy) ? PCCL_CU_NOT_READY : cuStreamSynchronize(stream);
}

pccl_cu_result cuEventCreate(pccl_cu_event *event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof **event);
  return *event == NULL ? OUT_OF_MEMORY : 0;
}

pccl_cu_result cuEventDestroy_v2(pccl_cu_event event) {
  free(event);
  return 0;
}

pccl_cu_result cuEventRecord(pccl_cu_event event, pccl_cu_stream stream) {
  (void)stream; /* it does not wait, since the executor's watchdog must see a running launch */
  clock_gettime(CLOCK_MONOTONIC, &event->at);
  return 0;
}

pccl_cu_result cuEventElapsedTime(float *milliseconds, pccl_cu_event from, pccl_cu_event to) {
  *milliseconds = (float)(to->at.tv_sec - from->at.tv_sec) * 1e3f + (float)(to->at.tv_nsec - from->at.tv_nsec) * 1e-6f;
  return 0;
}
