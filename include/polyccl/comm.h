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
 * only shrink or destroy it. fork() leaves the parent's communicators usable; calls on the child's copies are refused
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

/* How a communicator behaves. Callers begin with POLYCCL_CONFIG_DEFAULTS and change members. */
typedef struct polyccl_config {
  size_t size; /* sizeof(polyccl_config) */
  /* 1: functions return when their work is done. 0: none waits for another rank. Functions that would have to, and
   * calls on the NULL stream, return IN_PROGRESS; polyccl_comm_get_async_error() says when the work is done, and until
   * polyccl_comm_init_rank_config() or polyccl_comm_finalize() is done it is the only function that may be called. */
  int blocking;
  double timeout; /* seconds; 0: POLYCCL_TIMEOUT */
} polyccl_config;
#define POLYCCL_CONFIG_DEFAULTS \
  { sizeof(polyccl_config), 1, 0 }

/* polyccl_comm_init_rank() with a configuration; NULL: the defaults. Errors: INVALID for members out of range. */
POLYCCL_API polyccl_result polyccl_comm_init_rank_config(polyccl_comm **comm, int ranks, polyccl_unique_id id, int rank,
                                                         const polyccl_config *config);

/* Makes a communicator for each rank of one process: comms[0] to comms[ranks - 1], each for a thread of its own. The
 * caller owns them and frees each by polyccl_comm_destroy(). Errors: MEMORY or SYSTEM; then no communicator is left. */
POLYCCL_API polyccl_result polyccl_comm_init_all(polyccl_comm **comms, int ranks);

/* Waits until all operations of this rank have ended. The caller can only ask for its error and destroy it then.
 * Errors: those of the operations. */
POLYCCL_API polyccl_result polyccl_comm_finalize(polyccl_comm *comm);

/* Frees this rank's communicator with its plans. Operations that are under way end with an error on the other ranks. It
 * waits for no other rank. NULL is allowed; a communicator that was destroyed before is only logged. */
POLYCCL_API void polyccl_comm_destroy(polyccl_comm *comm);

/* Ends the running call and all later calls of every rank with POLYCCL_ERROR_REMOTE. Any thread may call this while
 * another uses the communicator. NULL is allowed. */
POLYCCL_API void polyccl_comm_abort(polyccl_comm *comm);

/* ---- communicators from communicators ----
 *
 * Every rank of `comm` calls these, in one order with its other calls; shrink is for the survivors alone. The new
 * communicator has nothing in common with the old one, which stays as it is: the caller owns and frees both. Plans are
 * not taken over. `config` NULL: as the old one. */

/* This rank takes part in no new communicator. */
#define POLYCCL_SPLIT_NOCOLOR (-1)

/* Ranks of one color (0 or more) get a communicator of their own, in the order of their keys, ranks of one key in the
 * order of their ranks. With POLYCCL_SPLIT_NOCOLOR *split is NULL. Errors: INVALID for another negative color; those of
 * any call. */
POLYCCL_API polyccl_result polyccl_comm_split(polyccl_comm *comm, int color, int key, polyccl_comm **split,
                                              const polyccl_config *config);

/* The ranks without those in `excluded` (`count` of them) get a new communicator and keep their order. All survivors
 * call it with the same list, which must not hold the caller; the excluded do not call. It works on a communicator that
 * has ended with an error, too: that is what it is for. Errors: INVALID for a list that is empty, out of range, holds a
 * rank twice or differs from another survivor's; TIMEOUT and REMOTE, which name the survivors that did not come. */
POLYCCL_API polyccl_result polyccl_comm_shrink(polyccl_comm *comm, const int *excluded, int count,
                                               polyccl_comm **shrunk, const polyccl_config *config);

/* A communicator of `ranks` ranks, more than `comm` has: the ranks of `comm` keep their numbers and call this with the
 * unique id that one of them has made, the new ones call polyccl_comm_init_rank() with the same id and the numbers
 * behind. Errors: those of polyccl_comm_init_rank(). */
POLYCCL_API polyccl_result polyccl_comm_grow(polyccl_comm *comm, int ranks, polyccl_unique_id id, polyccl_comm **grown,
                                             const polyccl_config *config);

/* The error that ended the communicator, or SUCCESS; with `blocking` 0 also IN_PROGRESS. It does not wait. Any thread
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
