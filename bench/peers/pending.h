/* Calls whose headers are there before they are: a benchmark of one that is missing crashes. This file goes with that.
 */
#include <polyccl/polyccl.h>

#pragma weak polyccl_send
#pragma weak polyccl_recv
#pragma weak polyccl_group_start
#pragma weak polyccl_group_end
#pragma weak polyccl_stream_create
#pragma weak polyccl_stream_destroy
#pragma weak polyccl_stream_synchronize
