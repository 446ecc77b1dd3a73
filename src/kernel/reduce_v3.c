#include "kernel/variants.h"

#define KERNELS pccl_kernels_v3
#define KERNELS_LABEL "x86-64-v3"
#include "kernel/reduce_body.h"
