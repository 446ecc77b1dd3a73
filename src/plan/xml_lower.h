/* What a plan must become before an executor of MSCCL XML can run it: the executors' parsers drop every nop, whoever
 * waits for it, and RCCL has no fused steps. */
#ifndef PCCL_PLAN_XML_LOWER_H
#define PCCL_PLAN_XML_LOWER_H

#include "plan/xml_target.h"

/* *lowered: a plan of the same meaning without nops, and without the steps that the target splits, which has passed the
 * verifier; NULL where `plan` is such a plan already. The caller destroys it. Errors: a plan that is not right, or
 * waits through more nops than can be followed. */
polyccl_result pccl_xml_lower(const pccl_xml_target *target, const polyccl_plan *plan, polyccl_plan **lowered);

#endif
