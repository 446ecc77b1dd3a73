/* Groups: several sends and receives as one operation.
 *
 * Between polyccl_group_start() and polyccl_group_end() a thread's sends and receives on one communicator are
 * collected, and the outermost end does them all at once, in any pattern without deadlock. Groups nest. Arguments are
 * checked when a call is made; if one fails, polyccl_group_end() returns its error and begins nothing. Other calls in a
 * group, and calls on a second communicator, give UNSUPPORTED.
 *
 * Thread safety: every thread has its own group. */
#ifndef POLYCCL_GROUP_H
#define POLYCCL_GROUP_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

POLYCCL_API polyccl_result polyccl_group_start(void);

/* Errors: INVALID without a start; those of the calls. */
POLYCCL_API polyccl_result polyccl_group_end(void);

#ifdef __cplusplus
}
#endif

#endif
