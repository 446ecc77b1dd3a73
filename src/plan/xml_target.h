/* The executors that take MSCCL XML, and what each of them can take: one table, checked before a plan is written. */
#ifndef PCCL_PLAN_XML_TARGET_H
#define PCCL_PLAN_XML_TARGET_H

#include <polyccl/plan.h>
#include <polyccl/program.h>

typedef struct pccl_xml_target {
  const char *name;
  const char *reduce_scatter;     /* the collective's name there */
  bool place_flags;               /* outofplace is wanted beside inplace */
  bool no_limit_is_zero;          /* maxBytes */
  bool splits_fused;              /* rcs, rrc, rrcs and rrs are refused: written as recv, reduce and send */
  uint32_t collectives;           /* bit set of what it knows */
  int32_t ranks;                  /* elements in <algo> */
  int32_t tbs, steps, elements;   /* of a rank; steps of a thread block, nops included */
  int32_t count, channels, peers; /* peers: per channel and direction of a rank */
  int32_t awaited_tb;             /* thread blocks with a lower number can be waited for */
  int32_t chained;                /* reductions into one place that are run as one */
  int32_t chunks;                 /* of a buffer */
  int32_t name_bytes;
  int32_t depth[POLYCCL_PROTOCOL_COUNT]; /* FIFO slots of a connection */
  int32_t
      message[POLYCCL_PROTOCOL_COUNT]; /* bytes of a slot, with buffers of the size they have unless told otherwise */
} pccl_xml_target;

const pccl_xml_target *pccl_xml_target_of(polyccl_format format);

/* LIMIT or UNSUPPORTED: the message names the limit, the target and a remedy. The first function checks what rewriting
 * a plan for the target (xml_lower.h) does not change, the second everything else, on the plan as it will be written.
 */
polyccl_result pccl_xml_target_check_kind(const pccl_xml_target *target, const polyccl_plan *plan);
polyccl_result pccl_xml_target_check(const pccl_xml_target *target, const polyccl_plan *plan);

/* INVALID where a wait of step `s` of thread block `t` (of all ranks) names a step that does not exist. */
polyccl_result pccl_xml_check_waits(const polyccl_plan *plan, int32_t t, int32_t s);

/* The chunks that count as a call's count there: all of the larger buffer where the executor multiplies the count of
 * the call by the ranks (allgather, reduce_scatter, alltoall), one block of it where it does not. */
int32_t pccl_xml_chunks_per_loop(const polyccl_plan *plan);

/* Checks the same for what a program's declaration determines, before it is compiled to `order`. */
polyccl_result pccl_xml_target_accepts(const pccl_xml_target *target, const polyccl_program_config *config,
                                       polyccl_loop_order order);

/* True for a wait that XML must write out; a wait for an earlier step of the same thread block is implied. */
bool pccl_xml_writes_wait(const polyccl_plan *plan, const polyccl_thread_block *tb, int32_t step, polyccl_wait wait);

/* <step> elements that the plan's step becomes: further waits are nops before it. */
int32_t pccl_xml_elements(const polyccl_plan *plan, const polyccl_thread_block *tb, int32_t step);

#endif
