/* What a subcommand requires of a program: checks (pccl_accept) of its declaration, before it runs any further. */
#ifndef PCCL_TOOLS_ACCEPT_H
#define PCCL_TOOLS_ACCEPT_H

#include <polyccl/compile.h>
#include <polyccl/topology.h>

#include "language/loader.h"

/* LIMIT for more ranks than one machine runs. context: unused. */
polyccl_result pccl_accept_local(const void *context, const polyccl_program_config *config);

/* INVALID for more ranks than the topology has. context: a polyccl_topology, or NULL for no requirement. */
polyccl_result pccl_accept_on(const void *context, const polyccl_program_config *config);

/* What pccl_accept_compile() checks: that the executor of the format and the topology of the options can take the
 * program. */
typedef struct pccl_accept_compile_context {
  polyccl_format format;
  const polyccl_compile_options *options;
} pccl_accept_compile_context;

polyccl_result pccl_accept_compile(const void *context, const polyccl_program_config *config);

/* Makes the same checks of a plan. */
polyccl_result pccl_accept_plan(const pccl_accept *accept, const polyccl_plan *plan);

#endif
