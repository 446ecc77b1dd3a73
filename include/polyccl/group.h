/* Groups: several calls as one operation.
 *
 * Between polyccl_group_start() and polyccl_group_end() a thread's calls are collected, and the end begins them all:
 * for each communicator one operation, in which sends and receives go on together, in any pattern without deadlock, and
 * the collectives follow in the order of the calls. The operation begins when the work before it on all its streams is
 * done, and work after it on these streams waits for it. A group may hold calls of several communicators, also of
 * several ranks of one communicator, so that one thread can drive them. Groups nest; the outermost end counts.
 *
 * Calls on the NULL stream in a group are done when the outermost polyccl_group_end() returns. Arguments are checked
 * when a call is made. If a call in the group fails, polyccl_group_end() returns its error and begins nothing.
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
