/* Executors of MSCCL XML send a step of several chunks as several messages where the chunks are large: a plan that is
 * safe with whole messages may then need more slots than the executor has, and hang. */
#ifndef PCCL_PLAN_XML_PIECES_H
#define PCCL_PLAN_XML_PIECES_H

#include "plan/xml_target.h"

/* *bytes: the largest call (counted as minBytes is) up to which the plan is safe on the target; UINT64_MAX: any. The
 * plan is as it will be written. LIMIT: it is too large to ask. */
polyccl_result pccl_xml_safe_bytes(const pccl_xml_target *target, const polyccl_plan *plan, uint64_t *bytes);

#endif
