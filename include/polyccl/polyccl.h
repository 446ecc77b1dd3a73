/* The runtime, in the shape of NCCL: communicators, plans that run on them, the collectives.
 *
 * A communicator joins the ranks of one machine. Ranks are processes (one makes a unique id, all call
 * polyccl_comm_init_rank() with it) or threads of one process (polyccl_comm_init_all()). Calls block: when one returns,
 * the result is in the receive buffer and the send buffer may be changed. All ranks make the same calls in the same
 * order. One thread at a time uses a communicator.
 *
 * What a call does is a plan's business (plan.h). polyccl_comm_add_plan() loads a plan, polyccl_run_plan() runs it;
 * polyccl_allreduce() and its kin choose among the loaded plans.
 *
 * Failure. A rank that dies, aborts, or does not do its part within POLYCCL_TIMEOUT seconds ends the call on every
 * other rank with POLYCCL_ERROR_REMOTE or POLYCCL_ERROR_TIMEOUT; polyccl_last_error() names it. The communicator is
 * then of no further use but to be destroyed. After fork() the child's copies of communicators are refused; the
 * parent's go on. */
#ifndef POLYCCL_H
#define POLYCCL_H

#include <stdbool.h>

#include "memory.h"
#include "plan.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct polyccl_comm polyccl_comm;

#define POLYCCL_UNIQUE_ID_BYTES 128
typedef struct polyccl_unique_id {
  unsigned char bytes[POLYCCL_UNIQUE_ID_BYTES];
} polyccl_unique_id;

/* Makes an id for one communicator. Send its bytes to the other ranks by any means; the calling process must live until
 * all have joined. */
POLYCCL_API polyccl_result polyccl_get_unique_id(polyccl_unique_id *id);
/* Joins as `rank` of `ranks`; returns when all have. Errors: the id was used before or its maker is gone, the rank is
 * taken, the ranks disagree on their number, a rank does not join in time (the message names it). */
POLYCCL_API polyccl_result polyccl_comm_init_rank(polyccl_comm **comm, int ranks, polyccl_unique_id id, int rank);
/* One communicator per rank for threads of this process: comms[0 .. ranks - 1]. */
POLYCCL_API polyccl_result polyccl_comm_init_all(polyccl_comm **comms, int ranks);
/* Local; NULL is fine, a second time does nothing but log. */
POLYCCL_API void polyccl_comm_destroy(polyccl_comm *comm);
/* Ends the running and all later calls of every rank with an error. May be called from any thread. */
POLYCCL_API void polyccl_comm_abort(polyccl_comm *comm);
/* What the communicator has met, without waiting; from any thread. */
POLYCCL_API polyccl_result polyccl_comm_get_async_error(const polyccl_comm *comm);
POLYCCL_API int polyccl_comm_count(const polyccl_comm *comm);
POLYCCL_API int polyccl_comm_user_rank(const polyccl_comm *comm);

/* Verifies the plan and loads it; every rank adds the same plans in the same order. The plan is not kept. `id` (may be
 * NULL) is the number to run it by. */
POLYCCL_API polyccl_result polyccl_comm_add_plan(polyccl_comm *comm, const polyccl_plan *plan, int *id);

/* The same with the plan's generated code (codegen.h): `code` is the path of the shared object that a C compiler made
 * of `polyccl build --target c`. INVALID when it was made of another plan or version. All ranks use it, or none. */
POLYCCL_API polyccl_result polyccl_comm_add_generated(polyccl_comm *comm, const polyccl_plan *plan, const char *code,
                                                      int *id);

/* Adds the plans of a folder (NAME.plan, NAME.xml) in the order of their names; those for other numbers of ranks are
 * passed over. `added` (may be NULL) is how many were taken. A plan that is wrong is an error that names its file. */
POLYCCL_API polyccl_result polyccl_comm_add_folder(polyccl_comm *comm, const char *path, int *added);

/* Runs plan `id`. `count`: elements per block (plan.md, the table of collectives). In-place plans want `send` and
 * `recv` to be one memory as the table says, others want them apart; `recv` may be NULL where the rank's output is not
 * used. `op` is ignored by plans that do not reduce. */
POLYCCL_API polyccl_result polyccl_run_plan(polyccl_comm *comm, int id, const void *send, void *recv, size_t count,
                                            polyccl_dtype dtype, polyccl_redop op);

/* The collectives, each by the first loaded plan that fits (the last loaded is asked first): collective, root,
 * placement, size, reduction, divisibility; where none does, by one of the library's own. POLYCCL_DEBUG=info says which
 * plan was chosen and why others were not. Buffers are in place as plan.md's table says, or apart; anything else is
 * INVALID. `recv` may be NULL where reduce and gather give no result, `send` where broadcast and scatter take none.
 * Counts are elements per block: what each rank contributes (allgather), receives (reduce_scatter) or exchanges with
 * each rank (alltoall). */
POLYCCL_API polyccl_result polyccl_allreduce(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                             polyccl_redop op, polyccl_comm *comm);
POLYCCL_API polyccl_result polyccl_allgather(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                             polyccl_comm *comm);
POLYCCL_API polyccl_result polyccl_reduce_scatter(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                                  polyccl_redop op, polyccl_comm *comm);
POLYCCL_API polyccl_result polyccl_alltoall(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                            polyccl_comm *comm);
POLYCCL_API polyccl_result polyccl_broadcast(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                                             polyccl_comm *comm);
POLYCCL_API polyccl_result polyccl_reduce(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                          polyccl_redop op, int root, polyccl_comm *comm);
POLYCCL_API polyccl_result polyccl_gather(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                                          polyccl_comm *comm);
POLYCCL_API polyccl_result polyccl_scatter(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                                           polyccl_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
