/* Runs independent jobs on all cores and reports progress on standard error: at once on a terminal, after two seconds
 * elsewhere. */
#ifndef PCCL_TOOLS_WORKERS_H
#define PCCL_TOOLS_WORKERS_H

#include <stddef.h>

#include <polyccl/types.h>

/* Does job `index`, in any thread. If it fails, pccl_run_jobs() reads polyccl_last_error() in that thread. */
typedef polyccl_result (*pccl_job)(void *context, size_t index);

/* Runs `count` jobs. Returns the failure with the smallest index and stores its message in `error`, or returns SUCCESS.
 * After a failure no new job starts. `what` names the jobs in the report: "simulating". */
polyccl_result pccl_run_jobs(const char *what, size_t count, pccl_job job, void *context, char *error, size_t room);

#endif
