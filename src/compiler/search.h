/* Schedule "best": the search for the schedule whose plan is quickest in the simulator. */
#ifndef PCCL_COMPILER_SEARCH_H
#define PCCL_COMPILER_SEARCH_H

#include "compiler/ir.h"

/* `ir` comes fresh from pccl_ir_of() and becomes the IR of the best plan found, ready for emit. The same call finds the
 * same plan. */
polyccl_result pccl_search_schedule(pccl_ir *ir);

#endif
