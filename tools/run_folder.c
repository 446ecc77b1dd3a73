/* polyccl run FOLDER: the ranks load all plans of the folder, and the library chooses one for each call. */
#include "base/error.h"
#include "plan/folder.h"
#include "run.h"

/* Plans must agree in what the command line does not choose. */
static polyccl_result check_plans_agree(const char *path, const polyccl_plan *plan, const polyccl_plan *first,
                                        bool collective, bool ranks) {
  if (!collective && plan->collective != first->collective) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: %s, others are %s: choose with --collective", path,
                     polyccl_collective_name(plan->collective), polyccl_collective_name(first->collective));
  }
  if (!ranks && plan->ranks != first->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: for %d ranks, others for %d: choose with --ranks", path, plan->ranks,
                     first->ranks);
  }
  return POLYCCL_SUCCESS;
}

/* Keeps the first plan of each placement, which defines the shape of the calls. */
static polyccl_result add_folder_plan(const char *path, const pccl_run_folder *folder, pccl_run_args *run) {
  polyccl_plan *plan;
  PCCL_TRY(polyccl_plan_read(path, &plan));
  const polyccl_plan *first = run->plan[0] != NULL ? run->plan[0] : run->plan[1];
  polyccl_result result = POLYCCL_SUCCESS;
  bool wanted = (folder->ranks == 0 || plan->ranks == folder->ranks) &&
                (!folder->has_collective || plan->collective == folder->collective);
  if (wanted && first != NULL) {
    result = check_plans_agree(path, plan, first, folder->has_collective, folder->ranks != 0);
  }
  if (wanted && result == POLYCCL_SUCCESS && run->plan[plan->inplace] == NULL) {
    run->plan[plan->inplace] = plan;
  } else {
    polyccl_plan_destroy(plan);
  }
  return result;
}

polyccl_result pccl_run_open_folder(const pccl_run_folder *folder, pccl_run_args *run) {
  pccl_plan_files files;
  PCCL_TRY(pccl_plan_files_list(folder->path, &files));
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t i = 0; i < files.count && result == POLYCCL_SUCCESS; i++) {
    result = add_folder_plan(files.path[i], folder, run);
  }
  pccl_plan_files_free(&files);
  PCCL_TRY(result);
  const polyccl_plan *first = run->plan[0] != NULL ? run->plan[0] : run->plan[1];
  if (first == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "%s: no plan (NAME.plan, NAME.xml) that fits", folder->path);
  }
  if (first->collective == POLYCCL_CUSTOM || first->collective == POLYCCL_SENDRECV) {
    return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "%s plans run one by one, not from a folder",
                     polyccl_collective_name(first->collective));
  }
  run->folder = folder->path;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_run_call(polyccl_comm *comm, const polyccl_plan *plan, const void *send, void *recv, size_t count,
                             polyccl_dtype dtype, polyccl_redop op) {
  switch (plan->collective) {
    case POLYCCL_ALLREDUCE: return polyccl_allreduce(send, recv, count, dtype, op, comm, NULL);
    case POLYCCL_ALLGATHER: return polyccl_allgather(send, recv, count, dtype, comm, NULL);
    case POLYCCL_REDUCE_SCATTER: return polyccl_reduce_scatter(send, recv, count, dtype, op, comm, NULL);
    case POLYCCL_ALLTOALL: return polyccl_alltoall(send, recv, count, dtype, comm, NULL);
    case POLYCCL_BROADCAST: return polyccl_broadcast(send, recv, count, dtype, plan->root, comm, NULL);
    case POLYCCL_REDUCE: return polyccl_reduce(send, recv, count, dtype, op, plan->root, comm, NULL);
    case POLYCCL_GATHER: return polyccl_gather(send, recv, count, dtype, plan->root, comm, NULL);
    case POLYCCL_SCATTER: return polyccl_scatter(send, recv, count, dtype, plan->root, comm, NULL);
    default: return pccl_fail(POLYCCL_ERROR_UNSUPPORTED, "no call for %s", polyccl_collective_name(plan->collective));
  }
}
