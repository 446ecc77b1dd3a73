/* Communicators and the plans that they run.
 *
 * A communicator joins the ranks of one machine. Ranks are processes (one makes a unique id, and all call
 * polyccl_comm_init_rank() with it) or threads of one process (polyccl_comm_init_all()). All ranks make the same calls
 * in the same order.
 *
 * Thread safety: one thread at a time may use a communicator, except where a function says otherwise. Different
 * communicators are independent.
 *
 * Errors: NULL or out-of-range arguments give POLYCCL_ERROR_INVALID. If a rank dies, aborts, or does not do its part
 * within POLYCCL_TIMEOUT seconds, the call ends on every other rank with POLYCCL_ERROR_REMOTE or POLYCCL_ERROR_TIMEOUT,
 * and polyccl_last_error() names that rank. If ranks make different calls, the communicator ends with
 * POLYCCL_ERROR_INVALID, and the text names both. After that every call on the communicator fails, and the caller can
 * only destroy it. fork() leaves the parent's communicators usable; calls on the child's copies are refused
 * as INVALID. */
#ifndef POLYCCL_COMM_H
#define POLYCCL_COMM_H

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

/* Makes the id of one communicator. The caller sends its bytes to the other ranks by any means. The calling process
 * must live until all ranks have joined. Any thread may call this at any time. Errors: MEMORY or SYSTEM if the memory
 * that the ranks share cannot be made. */
POLYCCL_API polyccl_result polyccl_get_unique_id(polyccl_unique_id *id);

/* Joins the communicator of `id` as `rank` of `ranks` (1 to POLYCCL_MAX_LOCAL_RANKS) and returns when all ranks have
 * joined. The caller owns *comm and frees it by polyccl_comm_destroy(). Errors: the id was used before or its maker is
 * gone, the rank is taken, the ranks disagree on their number, or a rank does not join in time; the message says which
 * and names the rank. */
POLYCCL_API polyccl_result polyccl_comm_init_rank(polyccl_comm **comm, int ranks, polyccl_unique_id id, int rank);

/* Makes a communicator for each rank of one process: comms[0] to comms[ranks - 1], each for a thread of its own. The
 * caller owns them and frees each by polyccl_comm_destroy(). Errors: MEMORY or SYSTEM; then no communicator is left. */
POLYCCL_API polyccl_result polyccl_comm_init_all(polyccl_comm **comms, int ranks);

/* Frees this rank's communicator with its plans. It
 * waits for no other rank. NULL is allowed; a communicator that was destroyed before is only logged. */
POLYCCL_API void polyccl_comm_destroy(polyccl_comm *comm);

/* Ends the running call and all later calls of every rank with POLYCCL_ERROR_REMOTE. Any thread may call this while
 * another uses the communicator. NULL is allowed. */
POLYCCL_API void polyccl_comm_abort(polyccl_comm *comm);

/* The error that ended the communicator, or SUCCESS. It does not wait. Any thread
 * may call this while another uses the communicator. */
POLYCCL_API polyccl_result polyccl_comm_get_async_error(const polyccl_comm *comm);

/* The number of ranks; 0 for NULL. */
POLYCCL_API int polyccl_comm_count(const polyccl_comm *comm);
/* This rank; -1 for NULL. */
POLYCCL_API int polyccl_comm_user_rank(const polyccl_comm *comm);

/* Verifies the plan and loads it. Every rank adds the same plans in the same order. The communicator keeps nothing of
 * `plan`, which the caller still owns. *id (`id` may be NULL) is the number by which polyccl_run_plan() runs it.
 * Errors: INVALID for a plan that does not pass the verifier or is for another number of ranks; LIMIT if its
 * connections need more than POLYCCL_BUFFER bytes; MEMORY; SYSTEM. */
POLYCCL_API polyccl_result polyccl_comm_add_plan(polyccl_comm *comm, const polyccl_plan *plan, int *id);

/* The same with the plan's generated code (codegen.h). `code` is the path of the shared object that a C compiler made
 * from the output of `polyccl build --target c`. All ranks of a communicator use it, or none. Errors: those of
 * polyccl_comm_add_plan(), and INVALID if the code was made from another plan or by another version. */
POLYCCL_API polyccl_result polyccl_comm_add_generated(polyccl_comm *comm, const polyccl_plan *plan, const char *code,
                                                      int *id);

/* Adds the plans of a folder (NAME.plan, NAME.xml) in the order of their names, except those for other numbers of
 * ranks. *added (`added` may be NULL) is the number of plans added. Errors: those of polyccl_plan_read() and
 * polyccl_comm_add_plan(); the message names the file, and the plans before it stay loaded. */
POLYCCL_API polyccl_result polyccl_comm_add_folder(polyccl_comm *comm, const char *path, int *added);

#ifdef __cplusplus
}
#endif

#endif
