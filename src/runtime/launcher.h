/* Ranks for one command: processes forked from the caller, or threads. Whatever happens to the caller or a rank,
 * no process and no file stays behind. */
#ifndef PCCL_RUNTIME_LAUNCHER_H
#define PCCL_RUNTIME_LAUNCHER_H

#include <polyccl/polyccl.h>

/* Runs in every rank; its result is the rank's. */
typedef polyccl_result (*pccl_rank_fn)(polyccl_comm *comm, void *argument);

/* Runs `function` on `ranks` ranks with a common communicator. The first failure, in the order in which they happened,
 * is the result; its message names the rank. */
polyccl_result pccl_launch_processes(int ranks, pccl_rank_fn function, void *argument);
polyccl_result pccl_launch_threads(int ranks, pccl_rank_fn function, void *argument);

#endif
