/* Runs independent jobs on all cores and shows how far they are on standard error: at once on a terminal, after two
 * seconds elsewhere. */
#ifndef PCCL_TOOLS_WORKERS_H
#define PCCL_TOOLS_WORKERS_H

#include <stddef.h>

#include <polyccl/types.h>

/* Does job `index`; runs in a thread of its own, so polyccl_last_error() must be kept by the job. */
typedef polyccl_result (*pccl_job)(void *context, size_t index);

/* The first failure by index, SUCCESS where there is none; after a failure no new job starts. `what` names the jobs:
 * "simulating". */
polyccl_result pccl_run_jobs(const char *what, size_t count, pccl_job job, void *context, char *error, size_t room);

#endif
