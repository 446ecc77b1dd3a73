/* The calls: collectives, sends and receives, in the shape of NCCL's.
 *
 * With `stream` NULL a call blocks: when it returns, the result is in the receive buffer and the send buffer may be
 * changed. The library has no streams yet (stream.h). Between polyccl_group_start() and
 * polyccl_group_end() (group.h) sends and receives are collected.
 *
 * A plan (plan.h) says what a call does. polyccl_comm_add_plan() loads a plan and polyccl_run_plan() runs it;
 * polyccl_allreduce() and the other collectives choose among the loaded plans. */
#ifndef POLYCCL_COLLECTIVES_H
#define POLYCCL_COLLECTIVES_H

#include "comm.h"
#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Runs plan `id`. `count` is in elements per block (docs/plan.md, the table of collectives, which also gives the number
 * of blocks in each buffer). `send` and `recv` share memory as that table says, or do not overlap, whatever the plan's
 * placement is and whatever other ranks do. Either may be NULL on a rank where the collective does not use it. Plans
 * that do not reduce ignore `op`. The caller owns both buffers, which may have any alignment. Errors: INVALID for an
 * unknown id or for buffers that do not fit the plan; UNSUPPORTED or INVALID for a count or reduction that the plan
 * cannot do; those of any call (above). */
POLYCCL_API polyccl_result polyccl_run_plan(polyccl_comm *comm, int id, const void *send, void *recv, size_t count,
                                            polyccl_dtype dtype, polyccl_redop op, polyccl_stream *stream);

/* ---- the collectives ----
 *
 * Each asks the loaded plans, the last loaded first, and runs the first that fits the call's collective, root,
 * size, reduction and count. If none fits, it runs one of the library's own plans. POLYCCL_DEBUG=info says
 * which plan was chosen and why others were not.
 *
 * `count` is in elements per block: what each rank contributes (allgather, gather), receives (reduce_scatter, scatter)
 * or exchanges with each rank (alltoall); for the others it is the whole buffer. Buffers are in place as the table in
 * docs/plan.md says, or apart. The caller owns them, and they may have any alignment.
 *
 * Whether a rank's buffers are one is its own matter: some ranks may be in place and others not. All ranks run the same
 * plan, which serves both; where it does not, this rank's input is copied first. The input of a rank that is out of
 * place is only read.
 *
 * Errors: INVALID for buffers that overlap otherwise, a root out of range, or a count beyond memory; UNSUPPORTED if no
 * plan fits; those of any call (above). */

/* recv[i] = the reduction of send[i] over all ranks. Both buffers have `count` elements. */
POLYCCL_API polyccl_result polyccl_allreduce(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                             polyccl_redop op, polyccl_comm *comm, polyccl_stream *stream);
/* `recv` (ranks x count) = the `send` (count) of all ranks in their order. */
POLYCCL_API polyccl_result polyccl_allgather(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                             polyccl_comm *comm, polyccl_stream *stream);
/* `recv` (count) = block r of the reduction of `send` (ranks x count) over all ranks, where r is this rank. */
POLYCCL_API polyccl_result polyccl_reduce_scatter(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                                  polyccl_redop op, polyccl_comm *comm, polyccl_stream *stream);
/* Block s of `recv` (ranks x count) = block r of rank s's `send` (ranks x count), where r is this rank. */
POLYCCL_API polyccl_result polyccl_alltoall(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                            polyccl_comm *comm, polyccl_stream *stream);
/* `recv` (count) = the root's `send` (count). `send` may be NULL on other ranks. */
POLYCCL_API polyccl_result polyccl_broadcast(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                                             polyccl_comm *comm, polyccl_stream *stream);
/* The root's `recv` (count) = the reduction of `send` (count) over all ranks. `recv` may be NULL on other ranks. */
POLYCCL_API polyccl_result polyccl_reduce(const void *send, void *recv, size_t count, polyccl_dtype dtype,
                                          polyccl_redop op, int root, polyccl_comm *comm, polyccl_stream *stream);
/* The root's `recv` (ranks x count) = the `send` (count) of all ranks in their order. `recv` may be NULL on other
 * ranks. */
POLYCCL_API polyccl_result polyccl_gather(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                                          polyccl_comm *comm, polyccl_stream *stream);
/* `recv` (count) = block r of the root's `send` (ranks x count), where r is this rank. `send` may be NULL on other
 * ranks. */
POLYCCL_API polyccl_result polyccl_scatter(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                                           polyccl_comm *comm, polyccl_stream *stream);

/* Returns when all ranks have called it. */
POLYCCL_API polyccl_result polyccl_barrier(polyccl_comm *comm, polyccl_stream *stream);

/* ---- point to point ----
 *
 * Sends of one rank to another match that rank's receives in the order of the calls. Both must have the same type and
 * count, else the communicator ends with INVALID. `count` may be 0; such a message is one, too. A send may return
 * before it is received. A send to oneself needs its receive in the same group. Errors: INVALID for a peer out of
 * range; those of any call. */
POLYCCL_API polyccl_result polyccl_send(const void *send, size_t count, polyccl_dtype dtype, int peer,
                                        polyccl_comm *comm, polyccl_stream *stream);
POLYCCL_API polyccl_result polyccl_recv(void *recv, size_t count, polyccl_dtype dtype, int peer, polyccl_comm *comm,
                                        polyccl_stream *stream);

/* ---- collectives with a count for each rank ----
 *
 * Counts and displacements are in elements and have an entry for each rank; the caller owns the arrays, which may be
 * changed once the call has returned. Displacements count from the start of the buffer; blocks of a receive buffer must
 * not overlap. A rank is in place if its own block of `send` is its own block of `recv`; alltoallv is in place with
 * `send` equal to `recv` and equal counts and displacements. Counts that two ranks state differently end the
 * communicator with INVALID. */

/* Block s of `recv` (recv_counts[s]) = block r of rank s's `send`, where r is this rank. Each rank knows its own counts
 * alone. */
POLYCCL_API polyccl_result polyccl_alltoallv(const void *send, const size_t *send_counts, const size_t *send_displs,
                                             void *recv, const size_t *recv_counts, const size_t *recv_displs,
                                             polyccl_dtype dtype, polyccl_comm *comm, polyccl_stream *stream);
/* Block s of `recv` (recv_counts[s]) = rank s's `send` (its send_count). All ranks have the same recv_counts. */
POLYCCL_API polyccl_result polyccl_allgatherv(const void *send, size_t send_count, void *recv,
                                              const size_t *recv_counts, const size_t *recv_displs, polyccl_dtype dtype,
                                              polyccl_comm *comm, polyccl_stream *stream);
/* `recv` (counts[r]) = block r of the reduction of `send` (all counts, end to end) over all ranks, where r is this
 * rank. All ranks have the same counts. */
POLYCCL_API polyccl_result polyccl_reduce_scatterv(const void *send, void *recv, const size_t *counts,
                                                   polyccl_dtype dtype, polyccl_redop op, polyccl_comm *comm,
                                                   polyccl_stream *stream);
/* Block s of the root's `recv` (recv_counts[s]) = rank s's `send` (its send_count). The root alone knows the counts;
 * other ranks pass NULL for them and for `recv`. */
POLYCCL_API polyccl_result polyccl_gatherv(const void *send, size_t send_count, void *recv, const size_t *recv_counts,
                                           const size_t *recv_displs, polyccl_dtype dtype, int root, polyccl_comm *comm,
                                           polyccl_stream *stream);
/* `recv` (its recv_count) = block r of the root's `send` (send_counts[r]), where r is this rank. The root alone knows
 * the counts; other ranks pass NULL for them and for `send`. */
POLYCCL_API polyccl_result polyccl_scatterv(const void *send, const size_t *send_counts, const size_t *send_displs,
                                            void *recv, size_t recv_count, polyccl_dtype dtype, int root,
                                            polyccl_comm *comm, polyccl_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
