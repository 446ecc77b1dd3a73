#include "plan/folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"

static int is_plan_file(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot != NULL && (strcmp(dot, ".plan") == 0 || strcmp(dot, ".xml") == 0);
}

static char *join_path(const char *folder, const char *name) {
  size_t length = strlen(folder) + strlen(name) + 2;
  char *path = pccl_array(length, 1);
  if (path != NULL) {
    snprintf(path, length, "%s/%s", folder, name);
  }
  return path;
}

polyccl_result pccl_plan_files_list(const char *folder, pccl_plan_files *files) {
  struct dirent **entries;
  int count = scandir(folder, &entries, is_plan_file, alphasort);
  if (count < 0) {
    pccl_fail_errno("%s: cannot read the folder", folder);
    return POLYCCL_ERROR_INVALID;
  }
  pccl_plan_files made = {.path = pccl_zeroed((size_t)count, sizeof *made.path), .count = (size_t)count};
  bool ok = made.path != NULL;
  for (int i = 0; i < count; i++) {
    if (ok) {
      made.path[i] = join_path(folder, entries[i]->d_name);
      ok = made.path[i] != NULL;
    }
    free(entries[i]);
  }
  free(entries);
  if (!ok) {
    pccl_plan_files_free(&made);
    return pccl_no_memory("the list of a folder's plans");
  }
  *files = made;
  return POLYCCL_SUCCESS;
}

void pccl_plan_files_free(pccl_plan_files *files) {
  for (size_t i = 0; files->path != NULL && i < files->count; i++) {
    free(files->path[i]);
  }
  free(files->path);
  *files = (pccl_plan_files){0};
}
