/* What subcommands can take of a program, known before it is compiled: pccl_accept's checks. */
#ifndef PCCL_TOOLS_ACCEPT_H
#define PCCL_TOOLS_ACCEPT_H

#include <polyccl/compile.h>
#include <polyccl/topology.h>

#include "language/loader.h"

/* The ranks of one machine. context: unused. */
polyccl_result pccl_accept_local(const void *context, const polyccl_program_config *config);

/* No more ranks than the topology has. context: polyccl_topology, or NULL: any. */
polyccl_result pccl_accept_on(const void *context, const polyccl_program_config *config);

/* What a format's executor and the options' topology take. */
typedef struct pccl_accept_compile_context {
  polyccl_format format;
  const polyccl_compile_options *options;
} pccl_accept_compile_context;

polyccl_result pccl_accept_compile(const void *context, const polyccl_program_config *config);

/* Of a plan that was read. */
polyccl_result pccl_accept_plan(const pccl_accept *accept, const polyccl_plan *plan);

#endif
