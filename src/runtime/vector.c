/* Collectives with a count for each rank, as sends and receives between all pairs of ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "executor/agree.h"
#include "kernel/mean.h"
#include "runtime/blocks.h"
#include "runtime/op.h"

/* What the calls have alike: checked, then filled with transfers, then submitted. */
typedef struct vector_call {
  polyccl_comm *comm;
  const char *name;
  pccl_call_number number;
  polyccl_dtype dtype;
  size_t element;
  int rank, ranks;
  pccl_transfer *transfer;
  size_t transfers;
} vector_call;

static polyccl_result open_call(polyccl_comm *comm, pccl_call_number number, polyccl_dtype dtype, vector_call *call) {
  PCCL_TRY(pccl_comm_usable(comm));
  const char *name = pccl_call_name(number);
  if ((unsigned)dtype >= POLYCCL_DTYPE_COUNT) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: unknown data type (number %d)", name, (int)dtype);
  }
  const pccl_member *member = &comm->executor.member;
  *call = (vector_call){.comm = comm,
                        .name = name,
                        .number = number,
                        .dtype = dtype,
                        .element = polyccl_dtype_size(dtype),
                        .rank = member->rank,
                        .ranks = member->ranks};
  return POLYCCL_SUCCESS;
}

static pccl_blocks blocks_of(const vector_call *call, const char *side, const void *buffer, const size_t *counts,
                             const size_t *displs) {
  return (pccl_blocks){call->name, side, buffer, counts, displs, call->ranks, call->element};
}

static polyccl_result check_displs(const vector_call *call, const char *side, const size_t *displs) {
  return displs != NULL ? POLYCCL_SUCCESS
                        : pccl_fail(POLYCCL_ERROR_INVALID, "%s: the %s displacements are NULL", call->name, side);
}

static polyccl_result check_root(const vector_call *call, int root) {
  return root >= 0 && root < call->ranks ? POLYCCL_SUCCESS
                                         : pccl_fail(POLYCCL_ERROR_INVALID, "%s: root %d is out of range (0 to %d)",
                                                     call->name, root, call->ranks - 1);
}

/* One buffer without blocks. */
static polyccl_result check_buffer(const vector_call *call, const char *side, const void *buffer, size_t count) {
  const size_t start = 0;
  pccl_blocks whole = {call->name, side, buffer, &count, &start, 1, call->element};
  return pccl_blocks_check(&whole);
}

static polyccl_result fail_overlap(const vector_call *call) {
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s: the buffers overlap without being in place", call->name);
}

/* The count of the rank's own block is stated twice. */
static polyccl_result check_own(const vector_call *call, size_t sends, size_t receives) {
  return sends == receives
             ? POLYCCL_SUCCESS
             : pccl_fail(POLYCCL_ERROR_INVALID, "%s: rank %d sends %zu elements to itself, but receives %zu",
                         call->name, call->rank, sends, receives);
}

/* ---- transfers ---- */

static polyccl_result reserve(vector_call *call, size_t transfers) {
  call->transfer = pccl_array(transfers, sizeof *call->transfer);
  return call->transfer != NULL ? POLYCCL_SUCCESS : pccl_no_memory("a collective's transfers");
}

static pccl_transfer *add(vector_call *call, bool sends, int peer, void *buffer, size_t count) {
  pccl_transfer *t = &call->transfer[call->transfers++];
  *t = (pccl_transfer){.sends = sends,
                       .peer = peer,
                       .channel = PCCL_CHANNEL_VECTOR,
                       .buffer = buffer,
                       .count = count,
                       .dtype = call->dtype,
                       .after = -1,
                       .replaces = -1};
  return t;
}

/* The rank's own block goes by a copy, unless it is in its place. */
static void add_own(vector_call *call, const void *from, void *to, size_t count) {
  if (from != to && count > 0) {
    add(call, true, call->rank, (void *)(uintptr_t)from, count);
    add(call, false, call->rank, to, count);
  }
}

/* `count`, `op`, `root` and `counts` as all ranks must state them; -1 and NULL: they need not. */
static polyccl_result submit(vector_call *call, polyccl_stream *stream, size_t count, int op, int root,
                             const size_t *counts) {
  uint64_t mixed = 1;
  for (int rank = 0; counts != NULL && rank < call->ranks; rank++) {
    mixed = pccl_mix64(mixed ^ counts[rank]);
  }
  pccl_work work = {.claim = {.count = count,
                              .plan = mixed | 1,
                              .collective = (int16_t)call->number,
                              .dtype = (int16_t)call->dtype,
                              .op = op,
                              .root = root,
                              .id = -1},
                    .collective = true,
                    .transfer = call->transfer,
                    .transfers = call->transfers,
                    .name = call->name};
  return pccl_submit(call->comm, stream, &work);
}

/* ---- alltoallv ---- */

static bool overlap_blocks(const pccl_blocks *send, const pccl_blocks *recv) {
  for (int rank = 0; rank < send->ranks; rank++) {
    if (pccl_blocks_touch(recv, -1, pccl_block_at(send, rank, 0), send->counts[rank] * send->element)) {
      return true;
    }
  }
  return false;
}

polyccl_result polyccl_alltoallv(const void *send, const size_t *send_counts, const size_t *send_displs, void *recv,
                                 const size_t *recv_counts, const size_t *recv_displs, polyccl_dtype dtype,
                                 polyccl_comm *comm, polyccl_stream *stream) {
  vector_call call = {0};
  PCCL_TRY(open_call(comm, PCCL_CALL_ALLTOALLV, dtype, &call));
  pccl_blocks from = blocks_of(&call, "send", send, send_counts, send_displs);
  pccl_blocks to = blocks_of(&call, "receive", recv, recv_counts, recv_displs);
  PCCL_TRY(check_displs(&call, "send", send_displs));
  PCCL_TRY(check_displs(&call, "receive", recv_displs));
  PCCL_TRY(pccl_blocks_check(&from));
  PCCL_TRY(pccl_blocks_check(&to));
  PCCL_TRY(pccl_blocks_check_apart(&to));
  PCCL_TRY(check_own(&call, send_counts[call.rank], recv_counts[call.rank]));
  size_t bytes = (size_t)call.ranks * sizeof *send_counts;
  bool inplace =
      send == recv && memcmp(send_counts, recv_counts, bytes) == 0 && memcmp(send_displs, recv_displs, bytes) == 0;
  if (!inplace && overlap_blocks(&from, &to)) {
    return fail_overlap(&call);
  }
  PCCL_TRY(reserve(&call, 2 * (size_t)call.ranks));
  int own = call.rank;
  add_own(&call, pccl_block_at(&from, own, 0), pccl_block_at(&to, own, 0), send_counts[own]);
  /* In place with each peer in turn, since its message replaces ours; else with all ranks at different peers. */
  for (int i = 1; i < call.ranks; i++) {
    int next = (own + i) % call.ranks, before = inplace ? next : (own + call.ranks - i) % call.ranks;
    int sent = (int)call.transfers;
    add(&call, true, next, pccl_block_at(&from, next, 0), send_counts[next]);
    add(&call, false, before, pccl_block_at(&to, before, 0), recv_counts[before])->replaces = inplace ? sent : -1;
  }
  return submit(&call, stream, 0, -1, -1, NULL);
}

/* ---- allgatherv ---- */

static size_t sum_of(const size_t *counts, int ranks) {
  size_t sum = 0;
  for (int rank = 0; rank < ranks; rank++) {
    sum += counts[rank];
  }
  return sum;
}

polyccl_result polyccl_allgatherv(const void *send, size_t send_count, void *recv, const size_t *recv_counts,
                                  const size_t *recv_displs, polyccl_dtype dtype, polyccl_comm *comm,
                                  polyccl_stream *stream) {
  vector_call call = {0};
  PCCL_TRY(open_call(comm, PCCL_CALL_ALLGATHERV, dtype, &call));
  pccl_blocks to = blocks_of(&call, "receive", recv, recv_counts, recv_displs);
  PCCL_TRY(check_displs(&call, "receive", recv_displs));
  PCCL_TRY(pccl_blocks_check(&to));
  PCCL_TRY(pccl_blocks_check_apart(&to));
  PCCL_TRY(check_buffer(&call, "send", send, send_count));
  int own = call.rank;
  PCCL_TRY(check_own(&call, send_count, recv_counts[own]));
  void *place = pccl_block_at(&to, own, 0);
  if (pccl_blocks_touch(&to, send == place ? own : -1, send, send_count * call.element)) {
    return fail_overlap(&call);
  }
  PCCL_TRY(reserve(&call, 2 * (size_t)call.ranks));
  add_own(&call, send, place, send_count);
  for (int i = 1; i < call.ranks; i++) {
    int next = (own + i) % call.ranks, before = (own + call.ranks - i) % call.ranks;
    add(&call, true, next, (void *)(uintptr_t)send, send_count);
    add(&call, false, before, pccl_block_at(&to, before, 0), recv_counts[before]);
  }
  return submit(&call, stream, sum_of(recv_counts, call.ranks), -1, -1, recv_counts);
}

/* ---- reduce_scatterv ---- */

/* Each rank adds the blocks of the others to its own in a fixed order, so the result does not depend on when they come.
 * The k-th receive reduces k contributions and one more. */
static void lower_reduction(vector_call *call, const pccl_blocks *from, size_t own_offset, void *recv,
                            pccl_reduce_fn reduce) {
  int own = call->rank, last = -1;
  size_t offset = own_offset, mine = from->counts[own];
  add_own(call, pccl_block_at(from, own, own_offset), recv, mine);
  /* Rank r receives from r + 1, r + 2, ... and so sends to r - 1, r - 2, ... first. */
  for (int i = 1; i < call->ranks; i++) {
    int target = (own + call->ranks - i) % call->ranks, source = (own + i) % call->ranks;
    offset = target == call->ranks - 1 ? sum_of(from->counts, target) : offset - from->counts[target];
    add(call, true, target, pccl_block_at(from, target, offset), from->counts[target]);
    pccl_transfer *t = add(call, false, source, recv, mine);
    t->reduce = reduce;
    t->addends = PCCL_K_ADDENDS(i, 1, i == call->ranks - 1);
    t->after = last;
    last = (int)call->transfers - 1;
  }
}

polyccl_result polyccl_reduce_scatterv(const void *send, void *recv, const size_t *counts, polyccl_dtype dtype,
                                       polyccl_redop op, polyccl_comm *comm, polyccl_stream *stream) {
  vector_call call = {0};
  PCCL_TRY(open_call(comm, PCCL_CALL_REDUCE_SCATTERV, dtype, &call));
  if ((unsigned)op >= POLYCCL_REDOP_COUNT) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: unknown reduction (number %d)", call.name, (int)op);
  }
  pccl_reduce_fn reduce = comm->executor.kernels->reduce[dtype][op];
  if (reduce == NULL) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "%s: %s of %s is not defined", call.name, polyccl_redop_name(op),
                     polyccl_dtype_name(dtype));
  }
  pccl_blocks from = blocks_of(&call, "send", send, counts, NULL);
  PCCL_TRY(pccl_blocks_check(&from));
  size_t mine = counts[call.rank], own_offset = sum_of(counts, call.rank);
  PCCL_TRY(check_buffer(&call, "receive", recv, mine));
  bool inplace = recv == pccl_block_at(&from, call.rank, own_offset);
  if (pccl_blocks_touch(&from, inplace ? call.rank : -1, recv, mine * call.element)) {
    return fail_overlap(&call);
  }
  PCCL_TRY(reserve(&call, 2 * (size_t)call.ranks));
  lower_reduction(&call, &from, own_offset, recv, reduce);
  return submit(&call, stream, sum_of(counts, call.ranks), (int)op, -1, counts);
}

/* ---- gatherv, scatterv ---- */

polyccl_result polyccl_gatherv(const void *send, size_t send_count, void *recv, const size_t *recv_counts,
                               const size_t *recv_displs, polyccl_dtype dtype, int root, polyccl_comm *comm,
                               polyccl_stream *stream) {
  vector_call call = {0};
  PCCL_TRY(open_call(comm, PCCL_CALL_GATHERV, dtype, &call));
  PCCL_TRY(check_root(&call, root));
  PCCL_TRY(check_buffer(&call, "send", send, send_count));
  if (call.rank != root) {
    PCCL_TRY(reserve(&call, 1));
    add(&call, true, root, (void *)(uintptr_t)send, send_count);
    return submit(&call, stream, 0, -1, root, NULL);
  }
  pccl_blocks to = blocks_of(&call, "receive", recv, recv_counts, recv_displs);
  PCCL_TRY(check_displs(&call, "receive", recv_displs));
  PCCL_TRY(pccl_blocks_check(&to));
  PCCL_TRY(pccl_blocks_check_apart(&to));
  PCCL_TRY(check_own(&call, send_count, recv_counts[root]));
  void *place = pccl_block_at(&to, root, 0);
  if (pccl_blocks_touch(&to, send == place ? root : -1, send, send_count * call.element)) {
    return fail_overlap(&call);
  }
  PCCL_TRY(reserve(&call, (size_t)call.ranks + 1));
  add_own(&call, send, place, send_count);
  for (int i = 1; i < call.ranks; i++) {
    int peer = (root + i) % call.ranks;
    add(&call, false, peer, pccl_block_at(&to, peer, 0), recv_counts[peer]);
  }
  return submit(&call, stream, 0, -1, root, NULL);
}

polyccl_result polyccl_scatterv(const void *send, const size_t *send_counts, const size_t *send_displs, void *recv,
                                size_t recv_count, polyccl_dtype dtype, int root, polyccl_comm *comm,
                                polyccl_stream *stream) {
  vector_call call = {0};
  PCCL_TRY(open_call(comm, PCCL_CALL_SCATTERV, dtype, &call));
  PCCL_TRY(check_root(&call, root));
  PCCL_TRY(check_buffer(&call, "receive", recv, recv_count));
  if (call.rank != root) {
    PCCL_TRY(reserve(&call, 1));
    add(&call, false, root, recv, recv_count);
    return submit(&call, stream, 0, -1, root, NULL);
  }
  pccl_blocks from = blocks_of(&call, "send", send, send_counts, send_displs);
  PCCL_TRY(check_displs(&call, "send", send_displs));
  PCCL_TRY(pccl_blocks_check(&from));
  PCCL_TRY(check_own(&call, send_counts[root], recv_count));
  void *place = pccl_block_at(&from, root, 0);
  if (pccl_blocks_touch(&from, recv == place ? root : -1, recv, recv_count * call.element)) {
    return fail_overlap(&call);
  }
  PCCL_TRY(reserve(&call, (size_t)call.ranks + 1));
  add_own(&call, place, recv, recv_count);
  for (int i = 1; i < call.ranks; i++) {
    int peer = (root + i) % call.ranks;
    add(&call, true, peer, pccl_block_at(&from, peer, 0), send_counts[peer]);
  }
  return submit(&call, stream, 0, -1, root, NULL);
}
