/* A folder of plans: what a site has compiled or tuned, taken as a whole. */
#include <polyccl/polyccl.h>

#include "base/error.h"
#include "base/log.h"
#include "plan/folder.h"
#include "runtime/comm.h"

static polyccl_result add_file(polyccl_comm *comm, const char *path, int *added) {
  polyccl_plan *plan;
  PCCL_TRY(polyccl_plan_read(path, &plan));
  polyccl_result result = POLYCCL_SUCCESS;
  if (plan->ranks != polyccl_comm_count(comm)) {
    PCCL_INFO("%s: not loaded: for %d ranks, not %d", path, plan->ranks, polyccl_comm_count(comm));
  } else {
    result = polyccl_comm_add_plan(comm, plan, NULL);
    result = result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", path);
    *added += result == POLYCCL_SUCCESS;
  }
  polyccl_plan_destroy(plan);
  return result;
}

polyccl_result polyccl_comm_add_folder(polyccl_comm *comm, const char *path, int *added) {
  PCCL_TRY(pccl_comm_usable(comm));
  if (path == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_comm_add_folder: path is NULL");
  }
  pccl_plan_files files;
  PCCL_TRY(pccl_plan_files_list(path, &files));
  polyccl_result result = POLYCCL_SUCCESS;
  int loaded = 0;
  for (size_t i = 0; i < files.count && result == POLYCCL_SUCCESS; i++) {
    result = add_file(comm, files.path[i], &loaded);
  }
  pccl_plan_files_free(&files);
  if (result == POLYCCL_SUCCESS && added != NULL) {
    *added = loaded;
  }
  return result;
}
