/* The runtime, whole: communicators (comm.h), the calls (collectives.h), streams (stream.h), groups (group.h), memory
 * (memory.h). The interface has the shape of NCCL's. */
#ifndef POLYCCL_H
#define POLYCCL_H

#include <stdbool.h>

#include "collectives.h"
#include "comm.h"
#include "group.h"
#include "memory.h"
#include "plan.h"
#include "stream.h"
#include "types.h"

#endif
