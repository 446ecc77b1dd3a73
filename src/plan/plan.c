#include "plan/plan.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"

const pccl_op_traits pccl_ops[POLYCCL_STEP_OP_COUNT] = {
    [POLYCCL_STEP_NOP] = {.name = "nop", .xml = "nop"},
    [POLYCCL_STEP_SEND] = {.name = "send", .xml = "s", .sends = true, .reads_src = true},
    [POLYCCL_STEP_RECV] = {.name = "recv", .xml = "r", .receives = true, .writes_dst = true},
    [POLYCCL_STEP_RCS] = {.name = "rcs", .xml = "rcs", .receives = true, .sends = true, .writes_dst = true},
    [POLYCCL_STEP_RRC] =
        {.name = "rrc", .xml = "rrc", .receives = true, .reads_src = true, .writes_dst = true, .reduces = true},
    [POLYCCL_STEP_RRCS] = {.name = "rrcs",
                           .xml = "rrcs",
                           .receives = true,
                           .sends = true,
                           .reads_src = true,
                           .writes_dst = true,
                           .reduces = true},
    [POLYCCL_STEP_RRS] =
        {.name = "rrs", .xml = "rrs", .receives = true, .sends = true, .reads_src = true, .reduces = true},
    [POLYCCL_STEP_COPY] = {.name = "copy", .xml = "cpy", .reads_src = true, .writes_dst = true},
    [POLYCCL_STEP_REDUCE] =
        {.name = "reduce", .xml = "re", .reads_src = true, .writes_dst = true, .reads_dst = true, .reduces = true},
};

const pccl_flag_word pccl_step_flags[] = {{"get", POLYCCL_FLAG_GET}, {"put", POLYCCL_FLAG_PUT}, {NULL, 0}};

const char *polyccl_step_op_name(polyccl_step_op op) {
  return (unsigned)op < POLYCCL_STEP_OP_COUNT ? pccl_ops[op].name : NULL;
}

polyccl_result polyccl_plan_create(int ranks, polyccl_plan **plan) {
  if (ranks < 1) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a plan needs at least 1 rank, not %d", ranks);
  }
  polyccl_plan *made = pccl_zeroed(1, sizeof *made);
  polyccl_plan_rank *rank = pccl_zeroed((size_t)ranks, sizeof *rank);
  if (made == NULL || rank == NULL) {
    free(made);
    free(rank);
    return pccl_no_memory("a plan");
  }
  made->ranks = ranks;
  made->rank = rank;
  *plan = made;
  return POLYCCL_SUCCESS;
}

void polyccl_plan_destroy(polyccl_plan *plan) {
  if (plan == NULL) {
    return;
  }
  for (size_t i = 0; i < plan->files; i++) {
    free(plan->file[i]);
  }
  free(plan->name);
  free(plan->rank);
  free(plan->tb);
  free(plan->step);
  free(plan->wait);
  free(plan->connection);
  free(plan->post);
  free(plan->leaf);
  free(plan->absent);
  free(plan->file);
  free(plan->location);
  free(plan);
}

pccl_collective_spec pccl_plan_spec(const polyccl_plan *plan) {
  return (pccl_collective_spec){.kind = plan->collective,
                                .ranks = plan->ranks,
                                .chunks = plan->chunks,
                                .chunks_out = plan->chunks_out,
                                .inplace = plan->inplace,
                                .root = plan->root,
                                .peer = plan->peer};
}

void polyccl_plan_shape(const polyccl_plan *plan, int rank, int32_t *input, int32_t *output) {
  (void)rank; /* every collective so far has one shape for all ranks */
  pccl_collective_spec spec = pccl_plan_spec(plan);
  int in, out;
  pccl_collective_shape(&spec, &in, &out);
  *input = in;
  *output = out;
}

static void normalise_operand(const polyccl_plan *plan, int rank, int32_t count, uint8_t *buffer, int32_t *offset) {
  int32_t input, output;
  polyccl_plan_shape(plan, rank, &input, &output);
  uint8_t kept = output > input ? POLYCCL_BUF_OUTPUT : POLYCCL_BUF_INPUT;
  int32_t size = *buffer == POLYCCL_BUF_INPUT ? input : output;
  if (*buffer == POLYCCL_BUF_SCRATCH || *buffer == kept || *offset > size || count > size - *offset) {
    return;
  }
  /* The smaller buffer is block `rank` of the larger; both begin at the same place where they are equal. */
  *offset += input == output ? 0 : rank * size;
  *buffer = kept;
}

void pccl_plan_normalise(const polyccl_plan *plan, int rank, polyccl_step *step) {
  if (plan->inplace && pccl_ops[step->op].reads_src) {
    normalise_operand(plan, rank, step->count, &step->src_buf, &step->src);
  }
  if (plan->inplace && pccl_ops[step->op].writes_dst) {
    normalise_operand(plan, rank, step->count, &step->dst_buf, &step->dst);
  }
}

polyccl_location pccl_step_location(const polyccl_plan *plan, const polyccl_step *step) {
  if (step->location < 0 || (size_t)step->location >= plan->locations) {
    return (polyccl_location){NULL, 0};
  }
  const struct polyccl_plan_location *at = &plan->location[step->location];
  return (polyccl_location){at->file >= 0 && (size_t)at->file < plan->files ? plan->file[at->file] : NULL, at->line};
}
