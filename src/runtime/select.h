/* The choice of a plan for a call, remembered per kind of call. */
#ifndef PCCL_RUNTIME_SELECT_H
#define PCCL_RUNTIME_SELECT_H

#include "runtime/comm.h"

void pccl_choices_free(polyccl_comm *comm);

#endif
