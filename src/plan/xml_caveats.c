/* What an XML file cannot say and its executors do not ask. */
#include <stdarg.h>
#include <stdio.h>

#include "plan/plan.h"
#include "plan/xml_lower.h"
#include "plan/xml_pieces.h"

typedef struct speaker {
  void (*say)(void *context, const char *text);
  void *context;
} speaker;

__attribute__((format(printf, 2, 3))) static void say_caveat(const speaker *to, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  to->say(to->context, text);
}

/* Callers of a rooted collective may leave out one of the buffers on all ranks but the root. */
static int32_t find_rank_that_uses(const polyccl_plan *plan, uint8_t buffer) {
  for (size_t t = 0; t < plan->tbs; t++) {
    const polyccl_thread_block *tb = &plan->tb[t];
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      const polyccl_step *step = &plan->step[s];
      bool used = (pccl_ops[step->op].reads_src && step->src_buf == buffer) ||
                  (pccl_ops[step->op].writes_dst && step->dst_buf == buffer);
      if (used && tb->rank != plan->root) {
        return tb->rank;
      }
    }
  }
  return -1;
}

static void say_root_caveats(const speaker *to, const pccl_xml_target *target, const polyccl_plan *plan) {
  const char *name = polyccl_collective_name(plan->collective);
  bool from_root = plan->collective == POLYCCL_BROADCAST || plan->collective == POLYCCL_SCATTER;
  uint8_t optional = from_root ? POLYCCL_BUF_INPUT : POLYCCL_BUF_OUTPUT;
  say_caveat(
      to,
      "%s uses a plan for calls with any root, and this one is right for root %d alone: load it only where every "
      "%s has that root",
      target->name, plan->root, name);
  if (plan->inplace) {
    say_caveat(
        to,
        "%s asks each rank by its own buffers whether a call is in place: pass the buffers of a %s in place on every "
        "rank, or ranks choose different plans and hang",
        target->name, name);
  } else if (find_rank_that_uses(plan, optional) >= 0) {
    say_caveat(to,
               "rank %d uses its %s buffer, which callers of a %s may leave out on all ranks but the root: pass one on "
               "every rank",
               find_rank_that_uses(plan, optional), from_root ? "input" : "output", name);
  }
}

static void say_size_caveats(const speaker *to, const pccl_xml_target *target, const polyccl_plan *plan) {
  polyccl_plan *lowered;
  uint64_t bytes = UINT64_MAX;
  if (pccl_xml_lower(target, plan, &lowered) == POLYCCL_SUCCESS &&
      pccl_xml_safe_bytes(target, lowered != NULL ? lowered : plan, &bytes) == POLYCCL_SUCCESS && bytes != UINT64_MAX &&
      (plan->max_bytes == 0 || plan->max_bytes > bytes)) {
    say_caveat(
        to,
        "maxBytes is %llu: for larger calls %s sends steps of several chunks in more messages than it has slots for, "
        "and the plan would hang; steps of fewer chunks need fewer%s",
        (unsigned long long)bytes, target->name,
        plan->protocol == POLYCCL_SIMPLE ? ", protocols LL and LL128 have more" : "");
  }
  polyccl_plan_destroy(lowered);
}

void polyccl_plan_caveats(const polyccl_plan *plan, polyccl_format format,
                          void (*report)(void *context, const char *text), void *context) {
  const speaker to = {report, context};
  if (format == POLYCCL_FORMAT_PLAN) {
    return;
  }
  const pccl_xml_target *target = pccl_xml_target_of(format);
  bool rooted = plan->collective == POLYCCL_BROADCAST || plan->collective == POLYCCL_REDUCE ||
                plan->collective == POLYCCL_GATHER || plan->collective == POLYCCL_SCATTER;
  if (plan->ranks == 1) {
    say_caveat(&to, "the plan has 1 rank: in %s each call of it launches a kernel that %s", target->name,
               plan->steps == 0 ? "does nothing" : "only copies");
  } else if (rooted) {
    say_root_caveats(&to, target, plan);
  }
  say_size_caveats(&to, target, plan);
  if (format == POLYCCL_FORMAT_XML && plan->collective == POLYCCL_ALLTOALL && plan->inplace) {
    say_caveat(&to, "%s refuses an alltoall in place: no call will use this plan", target->name);
  }
}
