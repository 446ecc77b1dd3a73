/* A folder of plans: the files NAME.plan and NAME.xml in it, in the order of their names. */
#ifndef PCCL_PLAN_FOLDER_H
#define PCCL_PLAN_FOLDER_H

#include <polyccl/types.h>

typedef struct pccl_plan_files {
  char **path; /* the folder's path in front */
  size_t count;
} pccl_plan_files;

/* The caller frees the list. INVALID: the folder cannot be read. */
polyccl_result pccl_plan_files_list(const char *folder, pccl_plan_files *files);
void pccl_plan_files_free(pccl_plan_files *files);

#endif
