/* Whether all ranks make the same calls. Every rank leaves what it calls on the board; a rank that waits in vain, and
 * with POLYCCL_CHECK every rank before it moves data, compares. */
#ifndef PCCL_EXECUTOR_AGREE_H
#define PCCL_EXECUTOR_AGREE_H

#include "transport/member.h"

/* What a claim calls collectives that have no plan, beside polyccl_collective. */
typedef enum pccl_call_number {
  PCCL_CALL_ALLTOALLV = 64,
  PCCL_CALL_ALLGATHERV,
  PCCL_CALL_REDUCE_SCATTERV,
  PCCL_CALL_GATHERV,
  PCCL_CALL_SCATTERV
} pccl_call_number;
/* Of a polyccl_collective, too. */
const char *pccl_call_name(int number);

/* Counts the call and leaves it for the others. */
static inline void pccl_post_call(pccl_member *member, const pccl_claim *claim) {
  pccl_board_post(member->board, member->rank, ++member->calls, claim);
}

/* POLYCCL_CHECK: waits until all ranks have posted this call, and compares. */
polyccl_result pccl_agree(pccl_member *member);

/* Compares the calls that are still on the board. Does not wait. An error, which ends the communicator on all ranks,
 * names the first call that differs. */
polyccl_result pccl_find_disagreement(pccl_member *member);

/* The same for a call that waits in vain and asks again and again: the comparison reads what every rank has left on the
 * board, so it is made only after a while and then now and then, unless `at_once`. *compare_at is the caller's, 0 when
 * it begins to wait. */
polyccl_result pccl_compare_calls(pccl_member *member, uint64_t *compare_at, bool at_once);

#endif
