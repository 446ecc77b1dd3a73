#include "kernel/variants.h"

#define KERNELS pccl_kernels_base
#define KERNELS_LABEL "plain"
#include "kernel/reduce_body.h"
