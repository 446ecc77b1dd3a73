#include "kernel/variants.h"

#define KERNELS pccl_kernels_v4
#define KERNELS_LABEL "x86-64-v4"
#include "kernel/reduce_body.h"
