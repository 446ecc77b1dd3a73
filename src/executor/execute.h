/* The executor: runs prepared plans, all thread blocks of the rank in turn. Nothing here blocks but pccl_execute().
 *
 * An execution is one call of a prepared plan. It borrows the lease of the executor (states of thread blocks, scratch),
 * so a member has one execution at a time; calls of a communicator run one after another anyway. */
#ifndef PCCL_EXECUTOR_EXECUTE_H
#define PCCL_EXECUTOR_EXECUTE_H

#include "executor/plans.h"
#include "transport/wait.h"

/* Where a thread block stands. */
typedef struct pccl_tb_state {
  uint32_t step; /* the one to run next */
  bool ended;
  uint64_t batch; /* its micro-batch */
  uint64_t done;  /* steps ended, each micro-batch counted */
  size_t arrived; /* line protocols: payload of the awaited message that has come */
  uint64_t since; /* traced: ns, when it began to wait, 0: it does not; and for what (polyccl_trace_state) */
  uint32_t reason;
} pccl_tb_state;

typedef struct pccl_execution {
  pccl_executor *executor;
  pccl_member *member;
  const pccl_prepared *p;
  char *base[PCCL_BUFFERS];
  pccl_tb_state *state;
  uint32_t running;                  /* thread blocks */
  uint32_t signature;                /* of this call: travels with its messages */
  pccl_reference mine[PCCL_BUFFERS]; /* by reference: our buffers as others may know them */
  bool inplace;                      /* by reference, plan out of place: our buffers are one memory */
  polyccl_result failed;
  uint64_t compare_at; /* ns: when the calls of the ranks are compared; 0: not waiting yet */
} pccl_execution;

/* Begins a call. `send` and `recv` have been checked against the plan. `signature` differs from call to call. */
polyccl_result pccl_execution_begin(pccl_execution *execution, pccl_executor *executor, const pccl_prepared *prepared,
                                    const void *send, void *recv, uint32_t signature);
/* Runs every thread block as far as it goes; true: something moved. */
bool pccl_execution_round(pccl_execution *execution);
/* The buffers are the caller's again. */
bool pccl_execution_ended(const pccl_execution *execution);
/* Every execution that has begun is left, whether it has ended or failed, and runs no further round. The result of the
 * call: an error, too, if the communicator was aborted meanwhile and a peer may have taken back what it had lent. */
polyccl_result pccl_execution_leave(pccl_execution *execution, polyccl_result result);
/* After a call that failed was left: no peer touches its buffers any more. A peer that is stopped may for long; so a
 * caller waits for PCCL_QUIET_NS at most. */
bool pccl_execution_quiet(const pccl_execution *execution);
enum { PCCL_QUIET_NS = 500 * 1000 * 1000 };
/* After a fruitless round: the error that ends the call, if there is one. `timed_out`: nothing has moved for too long.
 */
polyccl_result pccl_execution_check(pccl_execution *execution, bool timed_out);

/* What travels with the messages of the member's current call: it differs from call to call. */
enum { PCCL_CALL_STRIDE = 0x1e3779b1 };
static inline uint32_t pccl_call_signature(const pccl_executor *executor, const pccl_prepared *prepared) {
  return prepared->signature + (uint32_t)executor->member.calls * PCCL_CALL_STRIDE;
}

/* The rest of the call, on the calling thread: rounds, leave, quiet. */
polyccl_result pccl_execution_wait(pccl_execution *execution);

/* The ring may carry messages of this geometry: it has so far, or it is drained. */
bool pccl_end_ready(const pccl_prepared *p, pccl_end *end);

/* Whom the call waits for: the first thread block that waits for another rank; -1: nobody. */
int pccl_execution_awaits(const pccl_execution *execution, char *text, size_t length);
/* Ends the communicator, since this rank has waited too long for `peer` (-1: itself), which `whom` names. The error
 * follows who waits for whom to the rank that holds up all. */
polyccl_result pccl_give_up(pccl_member *member, int peer, const char *whom);
/* A sender whose message may still be read in our buffers; NULL: they are the caller's again. */
const pccl_end *pccl_execution_lends(const pccl_execution *execution);

#endif
