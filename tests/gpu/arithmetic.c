/* usage: gpu_arithmetic FILE: checks that the GPU's arithmetic (arithmetic.cpp) gives the bits of the CPU's kernels,
 * for every type and operation, on random bits and special numbers (of bytes on all pairs), at every stage of an
 * average. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "kernel/mean.h"
#include "kernel/reduce.h"

typedef void (*reduce_fn)(uint32_t dtype, uint32_t op, void *dst, const void *a, const void *b, size_t n,
                          uint64_t addends);

enum { ELEMENTS = 65536 };
static uint64_t a[ELEMENTS], b[ELEMENTS], gpu[ELEMENTS], cpu[ELEMENTS];

/* Random bits; one in four is special: rounding, order or NaNs depend on it. */
static uint64_t bits_of(size_t bytes, uint64_t random) {
  static const uint64_t halves[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x7bff,
                                    0xfbff, 0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xfe00, 0x7f80,
                                    0xff80, 0x7f7f, 0xff7f, 0x7fc0, 0xffff, 0x80,   0x7f};
  uint64_t chosen = halves[random / 4 % (sizeof halves / sizeof halves[0])];
  if (random % 4 != 0) {
    return pccl_mix64(random);
  }
  return chosen << (8 * bytes - 16) | (random / 256 % 2 ? random >> 40 & 1 : 0);
}

static void fill_operands(size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < ELEMENTS; i++) {
    uint64_t x = bits_of(bytes, pccl_mix64(seed + 2 * i)), y = bits_of(bytes, pccl_mix64(seed + 2 * i + 1));
    if (bytes == 1) {
      x = i / 256;
      y = i % 256;
    }
    memcpy((char *)a + i * bytes, &x, bytes);
    memcpy((char *)b + i * bytes, &y, bytes);
  }
}

static int compare_with_cpu(reduce_fn reduce, polyccl_dtype dtype, polyccl_redop op, uint64_t addends) {
  size_t bytes = polyccl_dtype_size(dtype);
  pccl_reduce_kernels()->reduce[dtype][op](cpu, a, b, ELEMENTS, addends);
  reduce((uint32_t)dtype, (uint32_t)op, gpu, a, b, ELEMENTS, addends);
  for (size_t i = 0; i < ELEMENTS; i++) {
    if (memcmp((char *)cpu + i * bytes, (char *)gpu + i * bytes, bytes) != 0) {
      uint64_t x = 0, y = 0, here = 0, there = 0;
      memcpy(&x, (char *)a + i * bytes, bytes);
      memcpy(&y, (char *)b + i * bytes, bytes);
      memcpy(&here, (char *)cpu + i * bytes, bytes);
      memcpy(&there, (char *)gpu + i * bytes, bytes);
      printf("%s %s of %llx and %llx (addends %llx): CPU %llx, GPU %llx\n", polyccl_dtype_name(dtype),
             polyccl_redop_name(op), (unsigned long long)x, (unsigned long long)y, (unsigned long long)addends,
             (unsigned long long)here, (unsigned long long)there);
      return 1;
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  static const uint64_t stages[] = {PCCL_K_ADDENDS(1, 1, 0), PCCL_K_ADDENDS(1, 1, 1),   PCCL_K_ADDENDS(2, 1, 0),
                                    PCCL_K_ADDENDS(1, 4, 1), PCCL_K_ADDENDS(32, 32, 1), PCCL_K_ADDENDS(33, 30, 0)};
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol = library != NULL ? dlsym(library, "gpu_reduce") : NULL;
  if (symbol == NULL) {
    fprintf(stderr, "usage: gpu_arithmetic FILE; see tests/gpu/arithmetic.c\n");
    return 2;
  }
  reduce_fn reduce;
  memcpy(&reduce, &symbol, sizeof reduce);
  int wrong = 0;
  for (int dtype = 0; dtype < POLYCCL_DTYPE_COUNT; dtype++) {
    for (int op = 0; op < POLYCCL_REDOP_COUNT; op++) {
      size_t count = op == POLYCCL_AVG ? sizeof stages / sizeof stages[0] : 1;
      count = pccl_reduction_defined((polyccl_dtype)dtype, (polyccl_redop)op) ? count : 0;
      for (size_t s = 0; s < count; s++) {
        fill_operands(polyccl_dtype_size((polyccl_dtype)dtype), (uint64_t)(dtype * 100 + op * 10) + s);
        wrong += compare_with_cpu(reduce, (polyccl_dtype)dtype, (polyccl_redop)op, stages[s]);
      }
    }
  }
  dlclose(library);
  printf("%s\n", wrong == 0 ? "the GPU's arithmetic is the CPU's" : "they differ");
  return wrong != 0;
}
