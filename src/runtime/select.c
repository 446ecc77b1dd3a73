/* Calls: their arguments are checked, a plan is chosen, prepared and run. */
#include "runtime/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "builtin/builtin.h"
#include "executor/agree.h"
#include "executor/execute.h"
#include "executor/generated.h"
#include "executor/plans.h"
#include "kernel/reduce.h"
#include "runtime/op.h"
#include "runtime/placement.h"

/* What was chosen lately: a small table, direct-mapped by what a call is made of. */
enum { CHOICES = 64 };

struct pccl_choice {
  pccl_prepared *prepared;
  size_t count;
  int32_t collective, dtype, op, root;
};

void pccl_choices_free(polyccl_comm *comm) {
  for (int i = 0; comm->choices != NULL && i < CHOICES; i++) {
    pccl_prepared_release(comm->choices[i].prepared);
  }
  free(comm->choices);
  comm->choices = NULL;
}

static polyccl_result run(polyccl_comm *comm, pccl_prepared *p, const void *send, void *recv) {
  pccl_executor *executor = &comm->executor;
  pccl_placement placement;
  polyccl_result result = pccl_placement_make(&comm->stages, executor->member.rank, p, send, recv, &placement);
  if (result == POLYCCL_SUCCESS && p->count > 0) {
    pccl_execution x;
    pccl_placement_begin(&placement);
    result = pccl_execution_begin(&x, executor, p, placement.send, placement.recv, pccl_call_signature(executor, p));
    result = result == POLYCCL_SUCCESS ? pccl_execution_wait(&x) : result;
  }
  pccl_placement_end(&comm->stages, &placement, result == POLYCCL_SUCCESS);
  return result;
}

/* `code`: the path of generated code, or NULL. */
static polyccl_result add_plan(polyccl_comm *comm, const polyccl_plan *plan, const char *code, int *id) {
  PCCL_TRY(pccl_comm_usable(comm));
  if (plan == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_comm_add_plan: plan is NULL");
  }
  pccl_loaded *loaded;
  pccl_member *member = &comm->executor.member;
  PCCL_TRY(pccl_load(plan, member, comm->builtin.buffer_bytes, &loaded));
  loaded->id = (int)comm->plans.len;
  polyccl_result result = code != NULL ? pccl_generated_attach(plan, member->rank, code, loaded) : POLYCCL_SUCCESS;
  if (result == POLYCCL_SUCCESS && !pccl_vec_push(&comm->plans, loaded)) {
    result = pccl_no_memory("a communicator's plans");
  }
  if (result != POLYCCL_SUCCESS) {
    pccl_loaded_release(loaded);
    return result;
  }
  pccl_choices_free(comm);
  if (id != NULL) {
    *id = loaded->id;
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_comm_add_plan(polyccl_comm *comm, const polyccl_plan *plan, int *id) {
  return add_plan(comm, plan, NULL, id);
}

polyccl_result polyccl_comm_add_generated(polyccl_comm *comm, const polyccl_plan *plan, const char *code, int *id) {
  if (code == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_comm_add_generated: no file is named");
  }
  return add_plan(comm, plan, code, id);
}

polyccl_result polyccl_run_plan(polyccl_comm *comm, int id, const void *send, void *recv, size_t count,
                                polyccl_dtype dtype, polyccl_redop op, polyccl_stream *stream) {
  PCCL_TRY(pccl_comm_usable(comm));
  PCCL_TRY(pccl_refuse_later(stream));
  if (id < 0 || (size_t)id >= comm->plans.len) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "plan %d is not loaded (%zu are)", id, comm->plans.len);
  }
  pccl_loaded *plan = comm->plans.data[id];
  pccl_claim claim = {.count = count,
                      .collective = (int16_t)plan->spec.kind,
                      .dtype = (int16_t)dtype,
                      .op = plan->reduces ? (int32_t)op : -1,
                      .root = -1,
                      .id = id};
  pccl_prepared *p;
  polyccl_result result = pccl_prepare(&comm->executor, plan, count, dtype, op, &p);
  claim.plan = result == POLYCCL_SUCCESS ? p->signature : 0;
  pccl_post_call(&comm->executor.member, &claim);
  if (comm->checks) {
    PCCL_TRY(pccl_agree(&comm->executor.member));
  }
  PCCL_TRY(result);
  return run(comm, p, send, recv);
}

/* ---- the choice ---- */

typedef struct request {
  polyccl_collective collective;
  size_t count;
  polyccl_dtype dtype;
  polyccl_redop op;
  int root;
} request;

/* Of the larger buffer. */
static uint64_t bytes_of(const request *r, int ranks) {
  pccl_collective_spec spec = {.kind = r->collective, .ranks = ranks, .chunks = 1};
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  return r->count * (uint64_t)(in > out ? in : out) * polyccl_dtype_size(r->dtype);
}

/* NULL: the plan can do it; else why it cannot. */
static const char *reason_against(const pccl_loaded *plan, const request *r) {
  if (plan->spec.kind != r->collective) {
    return "another collective";
  }
  if (r->root >= 0 && plan->spec.root != r->root) {
    return "another root";
  }
  if (plan->reduces && plan->redops != 0 && (plan->redops >> r->op & 1) == 0) {
    return "not for this reduction";
  }
  if (!plan->uneven && r->count % (size_t)plan->spec.chunks != 0) {
    return "the count is not a multiple of its chunks";
  }
  uint64_t bytes = bytes_of(r, plan->spec.ranks);
  if (bytes < plan->min_bytes || (plan->max_bytes != 0 && bytes > plan->max_bytes)) {
    return "not for this size";
  }
  return NULL;
}

static polyccl_result choose(polyccl_comm *comm, const request *r, pccl_prepared **prepared) {
  pccl_loaded *chosen = NULL;
  for (size_t i = comm->plans.len; i-- > 0 && chosen == NULL;) {
    const char *reason = reason_against(comm->plans.data[i], r);
    if (reason == NULL) {
      chosen = comm->plans.data[i];
    } else if (comm->executor.member.rank == 0) {
      PCCL_INFO("%s of %zu %s: not plan %zu \"%s\": %s", polyccl_collective_name(r->collective), r->count,
                polyccl_dtype_name(r->dtype), i, comm->plans.data[i]->name, reason);
    }
  }
  if (chosen == NULL) {
    pccl_builtin_call wanted = {r->collective, r->root, bytes_of(r, comm->executor.member.ranks)};
    PCCL_TRY(pccl_builtin_plan(&comm->builtin, &wanted, &chosen));
  }
  if (chosen == NULL) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "none of the %zu loaded plans does %s of %zu %s", comm->plans.len,
                     polyccl_collective_name(r->collective), r->count, polyccl_dtype_name(r->dtype));
  }
  if (comm->executor.member.rank == 0) {
    char which[32] = "built-in plan";
    if (chosen->id >= 0) {
      snprintf(which, sizeof which, "plan %d", chosen->id);
    }
    PCCL_INFO("%s of %zu %s: %s \"%s\", %s", polyccl_collective_name(r->collective), r->count,
              polyccl_dtype_name(r->dtype), which, chosen->name, polyccl_protocol_name(chosen->protocol));
  }
  return pccl_prepare(&comm->executor, chosen, r->count, r->dtype, r->op, prepared);
}

/* The place of the call in the table; what was remembered there for another call is dropped. */
static struct pccl_choice *find_choice(polyccl_comm *comm, const request *r) {
  size_t slot = (r->count * 7 + (size_t)r->collective * 5 + (size_t)r->dtype * 3 + (size_t)r->op) % CHOICES;
  struct pccl_choice *choice = &comm->choices[slot];
  if (choice->count != r->count || choice->collective != (int32_t)r->collective || choice->dtype != (int32_t)r->dtype ||
      choice->op != (int32_t)r->op || choice->root != r->root) {
    pccl_prepared_release(choice->prepared);
    *choice = (struct pccl_choice){NULL, r->count, (int32_t)r->collective, (int32_t)r->dtype, (int32_t)r->op, r->root};
  }
  return choice;
}

static polyccl_result call(polyccl_comm *comm, polyccl_stream *stream, const void *send, void *recv, request r) {
  PCCL_TRY(pccl_comm_usable(comm));
  PCCL_TRY(pccl_refuse_later(stream));
  PCCL_TRY(pccl_check_reduction(r.dtype, r.op));
  if (r.root >= comm->executor.member.ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "root %d is out of range (0 to %d)", r.root,
                     comm->executor.member.ranks - 1);
  }
  size_t block;
  if (__builtin_mul_overflow(r.count, polyccl_dtype_size(r.dtype), &block) || block > SIZE_MAX / 4096) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%zu elements are more than memory can hold", r.count);
  }
  if (comm->choices == NULL && (comm->choices = pccl_zeroed(CHOICES, sizeof *comm->choices)) == NULL) {
    return pccl_no_memory("a communicator's choices");
  }
  struct pccl_choice *choice = find_choice(comm, &r);
  pccl_prepared *p = choice->prepared;
  pccl_claim claim = {.count = r.count,
                      .plan = p != NULL ? p->signature : 0,
                      .collective = (int16_t)r.collective,
                      .dtype = (int16_t)r.dtype,
                      .op = pccl_collective_reduces(r.collective) ? (int32_t)r.op : -1,
                      .root = r.root,
                      .id = -1};
  pccl_post_call(&comm->executor.member, &claim);
  if (comm->checks) {
    PCCL_TRY(pccl_agree(&comm->executor.member));
  }
  if (r.count == 0) {
    return POLYCCL_SUCCESS;
  }
  if (p == NULL) {
    PCCL_TRY(choose(comm, &r, &choice->prepared));
    p = pccl_prepared_keep(choice->prepared);
    claim.plan = p->signature;
    pccl_board_post(comm->executor.member.board, comm->executor.member.rank, comm->executor.member.calls, &claim);
  }
  return run(comm, p, send, recv);
}

/* A root below 0 is not "none" here. */
static polyccl_result call_rooted(polyccl_comm *comm, polyccl_stream *stream, const void *send, void *recv, request r) {
  return r.root >= 0 ? call(comm, stream, send, recv, r)
                     : pccl_fail(POLYCCL_ERROR_INVALID, "root %d is out of range (0 to %d)", r.root,
                                 polyccl_comm_count(comm) - 1);
}

polyccl_result polyccl_allreduce(const void *send, void *recv, size_t count, polyccl_dtype dtype, polyccl_redop op,
                                 polyccl_comm *comm, polyccl_stream *stream) {
  return call(comm, stream, send, recv, (request){POLYCCL_ALLREDUCE, count, dtype, op, -1});
}

polyccl_result polyccl_allgather(const void *send, void *recv, size_t count, polyccl_dtype dtype, polyccl_comm *comm,
                                 polyccl_stream *stream) {
  return call(comm, stream, send, recv, (request){POLYCCL_ALLGATHER, count, dtype, POLYCCL_SUM, -1});
}

polyccl_result polyccl_reduce_scatter(const void *send, void *recv, size_t count, polyccl_dtype dtype, polyccl_redop op,
                                      polyccl_comm *comm, polyccl_stream *stream) {
  return call(comm, stream, send, recv, (request){POLYCCL_REDUCE_SCATTER, count, dtype, op, -1});
}

polyccl_result polyccl_alltoall(const void *send, void *recv, size_t count, polyccl_dtype dtype, polyccl_comm *comm,
                                polyccl_stream *stream) {
  return call(comm, stream, send, recv, (request){POLYCCL_ALLTOALL, count, dtype, POLYCCL_SUM, -1});
}

polyccl_result polyccl_broadcast(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                                 polyccl_comm *comm, polyccl_stream *stream) {
  return call_rooted(comm, stream, send, recv, (request){POLYCCL_BROADCAST, count, dtype, POLYCCL_SUM, root});
}

polyccl_result polyccl_reduce(const void *send, void *recv, size_t count, polyccl_dtype dtype, polyccl_redop op,
                              int root, polyccl_comm *comm, polyccl_stream *stream) {
  return call_rooted(comm, stream, send, recv, (request){POLYCCL_REDUCE, count, dtype, op, root});
}

polyccl_result polyccl_gather(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                              polyccl_comm *comm, polyccl_stream *stream) {
  return call_rooted(comm, stream, send, recv, (request){POLYCCL_GATHER, count, dtype, POLYCCL_SUM, root});
}

polyccl_result polyccl_scatter(const void *send, void *recv, size_t count, polyccl_dtype dtype, int root,
                               polyccl_comm *comm, polyccl_stream *stream) {
  return call_rooted(comm, stream, send, recv, (request){POLYCCL_SCATTER, count, dtype, POLYCCL_SUM, root});
}
