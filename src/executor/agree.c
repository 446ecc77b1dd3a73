#include "executor/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/wait.h"

const char *pccl_call_name(int number) {
  switch (number) {
    case PCCL_CALL_ALLTOALLV: return "alltoallv";
    case PCCL_CALL_ALLGATHERV: return "allgatherv";
    case PCCL_CALL_REDUCE_SCATTERV: return "reduce_scatterv";
    case PCCL_CALL_GATHERV: return "gatherv";
    case PCCL_CALL_SCATTERV: return "scatterv";
    default: {
      const char *name = polyccl_collective_name((polyccl_collective)number);
      return name != NULL ? name : "?";
    }
  }
}

/* All ranks know one count. */
static bool has_count(int number) {
  return number < PCCL_CALL_ALLTOALLV || number == PCCL_CALL_ALLGATHERV || number == PCCL_CALL_REDUCE_SCATTERV;
}

static void name_call(const pccl_claim *c, char *text, size_t length) {
  char root[24] = "", plan[48] = "", count[24] = "";
  if (c->root >= 0) {
    snprintf(root, sizeof root, ", root %d", (int)c->root);
  }
  if (c->id >= 0) {
    snprintf(plan, sizeof plan, " by plan %d (%08x)", (int)c->id, (unsigned)(c->plan ^ c->plan >> 32));
  }
  const char *dtype = polyccl_dtype_name((polyccl_dtype)c->dtype), *op = polyccl_redop_name((polyccl_redop)c->op);
  if (has_count(c->collective)) {
    snprintf(count, sizeof count, "%llu ", (unsigned long long)c->count);
  }
  snprintf(text, length, "%s%s of %s%s%s%s%s", pccl_call_name(c->collective), plan, count, dtype != NULL ? dtype : "?",
           c->op >= 0 ? ", " : "",
           c->op < 0    ? ""
           : op != NULL ? op
                        : "?",
           root);
}

static bool same_call(const pccl_claim *a, const pccl_claim *b) {
  bool planned = a->plan == 0 || b->plan == 0 || a->plan == b->plan;
  return a->count == b->count && a->collective == b->collective && planned && a->dtype == b->dtype && a->op == b->op &&
         a->root == b->root && a->id == b->id;
}

static polyccl_result differ(pccl_member *member, uint64_t number, int other, const pccl_claim *ours,
                             const pccl_claim *theirs) {
  char here[150], there[150];
  name_call(ours, here, sizeof here);
  name_call(theirs, there, sizeof there);
  const char *hint = strcmp(here, there) != 0                  ? ""
                     : ours->collective >= PCCL_CALL_ALLTOALLV ? " (other counts of blocks)"
                                                               : " (by different plans or options)";
  pccl_board_abort(member->board, POLYCCL_ERROR_INVALID, "call %llu differs: rank %d: %s; rank %d: %s%s",
                   (unsigned long long)number, member->rank, here, other, there, hint);
  return pccl_board_error(member->board);
}

static polyccl_result compare(pccl_member *member, uint64_t number) {
  pccl_claim ours, theirs;
  if (!pccl_board_claim(member->board, member->rank, number, &ours)) {
    return POLYCCL_SUCCESS;
  }
  for (int rank = 0; rank < member->ranks; rank++) {
    if (rank != member->rank && pccl_board_claim(member->board, rank, number, &theirs) && !same_call(&ours, &theirs)) {
      return differ(member, number, rank, &ours, &theirs);
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_find_disagreement(pccl_member *member) {
  uint64_t first = member->calls > PCCL_CLAIMS ? member->calls - PCCL_CLAIMS + 1 : 1;
  for (uint64_t number = first; number <= member->calls; number++) {
    PCCL_TRY(compare(member, number));
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_compare_calls(pccl_member *member, uint64_t *compare_at, bool at_once) {
  static const uint64_t after_ns = 20u * 1000 * 1000, every_ns = 100u * 1000 * 1000;
  uint64_t now = pccl_now();
  if (*compare_at == 0) {
    *compare_at = now + after_ns;
  }
  if (!at_once && now < *compare_at) {
    return POLYCCL_SUCCESS;
  }
  *compare_at = now + every_ns;
  return pccl_find_disagreement(member);
}

static polyccl_result never_called(pccl_member *member) {
  pccl_claim ours = {.op = -1, .root = -1, .id = -1};
  pccl_board_claim(member->board, member->rank, member->calls, &ours);
  char here[150], list[100] = "";
  size_t used = 0;
  for (int rank = 0; rank < member->ranks && used < sizeof list - 16; rank++) {
    if (pccl_board_calls(member->board, rank) < member->calls) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", used > 0 ? ", " : "", rank);
    }
  }
  name_call(&ours, here, sizeof here);
  pccl_board_abort(member->board, POLYCCL_ERROR_TIMEOUT, "rank %d waited %llu s in call %llu (%s) for rank %s to call",
                   member->rank, (unsigned long long)(member->timeout_ns / 1000000000u),
                   (unsigned long long)member->calls, here, list);
  return pccl_board_error(member->board);
}

static bool all_called(const pccl_member *member) {
  for (int rank = 0; rank < member->ranks; rank++) {
    if (pccl_board_calls(member->board, rank) < member->calls) {
      return false;
    }
  }
  return true;
}

polyccl_result pccl_agree(pccl_member *member) {
  for (int rank = 0; rank < member->ranks; rank++) {
    pccl_member_notify(member, rank);
  }
  pccl_backoff backoff = {0};
  while (!all_called(member)) {
    polyccl_result result = pccl_idle(member, &backoff);
    if (result != POLYCCL_SUCCESS || backoff.timed_out) {
      result = result == POLYCCL_SUCCESS ? never_called(member) : result;
      pccl_busy(member, &backoff);
      return result;
    }
  }
  pccl_busy(member, &backoff);
  return compare(member, member->calls);
}
