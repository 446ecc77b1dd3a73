/* A folder of plans: what a site has compiled or tuned, taken as a whole. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/polyccl.h>

#include "base/error.h"
#include "base/log.h"
#include "runtime/comm.h"

static int is_plan_name(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot != NULL && (strcmp(dot, ".plan") == 0 || strcmp(dot, ".xml") == 0);
}

static polyccl_result add_file(polyccl_comm *comm, const char *path, int *added) {
  polyccl_plan *plan;
  PCCL_TRY(polyccl_plan_read(path, &plan));
  polyccl_result result = POLYCCL_SUCCESS;
  if (plan->ranks != comm->ranks) {
    PCCL_INFO("%s: not loaded: for %d ranks, not %d", path, plan->ranks, comm->ranks);
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
  struct dirent **entries;
  int count = scandir(path, &entries, is_plan_name, alphasort);
  if (count < 0) {
    pccl_fail_errno("%s: cannot read the folder", path);
    return POLYCCL_ERROR_INVALID;
  }
  polyccl_result result = POLYCCL_SUCCESS;
  int loaded = 0;
  for (int i = 0; i < count; i++) {
    char file[4096];
    if (result == POLYCCL_SUCCESS) {
      int length = snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
      result = length > 0 && (size_t)length < sizeof file
                   ? add_file(comm, file, &loaded)
                   : pccl_fail(POLYCCL_ERROR_INVALID, "%s: the path is too long", path);
    }
    free(entries[i]);
  }
  free(entries);
  if (result == POLYCCL_SUCCESS && added != NULL) {
    *added = loaded;
  }
  return result;
}
