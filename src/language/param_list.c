/* The parameters of one program: those that the user gave, and those that the program asked for. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "language/loader.h"

polyccl_result pccl_loader_check_given(const pccl_loader *loader) {
  for (size_t i = 0; i < loader->given_count; i++) {
    const polyccl_param *given = &loader->given[i];
    if (given->name == NULL || given->value == NULL || given->name[0] == '\0') {
      return pccl_fail(POLYCCL_ERROR_INVALID, "a parameter needs a name and a value");
    }
    for (size_t k = 0; k < i; k++) {
      if (strcmp(loader->given[k].name, given->name) == 0) {
        return pccl_fail(POLYCCL_ERROR_INVALID, "parameter %s is given twice", given->name);
      }
    }
  }
  return POLYCCL_SUCCESS;
}

const char *pccl_loader_given(const pccl_loader *loader, const char *name) {
  for (size_t i = 0; i < loader->given_count; i++) {
    if (strcmp(loader->given[i].name, name) == 0) {
      return loader->given[i].value;
    }
  }
  return NULL;
}

static bool was_asked_for(const pccl_loader *loader, const char *name) {
  for (size_t i = 0; i < loader->asked.len; i++) {
    if (strcmp(loader->asked.data[i].name, name) == 0) {
      return true;
    }
  }
  return false;
}

static void free_entry(pccl_param_entry *entry) {
  free(entry->name);
  free(entry->value);
  free(entry->default_value);
  free(entry->help);
}

polyccl_result pccl_loader_record_param(pccl_loader *loader, const char *name, const char *value,
                                        const char *default_value, const char *help, bool *is_new) {
  *is_new = !was_asked_for(loader, name);
  if (!*is_new) {
    return POLYCCL_SUCCESS;
  }
  pccl_param_entry entry = {pccl_strdup(name), pccl_strdup(value), pccl_strdup(default_value), pccl_strdup(help)};
  bool copied = entry.name != NULL && entry.value != NULL && entry.help != NULL &&
                (default_value == NULL || entry.default_value != NULL);
  if (!copied || !pccl_vec_push(&loader->asked, entry)) {
    free_entry(&entry);
    return pccl_no_memory("a parameter");
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_loader_check_asked(const pccl_loader *loader, const char *file) {
  for (size_t i = 0; i < loader->given_count; i++) {
    if (was_asked_for(loader, loader->given[i].name)) {
      continue;
    }
    pccl_text text = {0};
    for (size_t k = 0; k < loader->asked.len; k++) {
      pccl_text_add(&text, "%s%s", k > 0 ? ", " : "", loader->asked.data[k].name);
    }
    polyccl_result result =
        pccl_fail(POLYCCL_ERROR_INVALID, "%s: no parameter \"%.80s\" (%s%s)", file, loader->given[i].name,
                  loader->asked.len > 0 ? "known: " : "the program has none", text.data != NULL ? text.data : "");
    pccl_text_free(&text);
    return result;
  }
  return POLYCCL_SUCCESS;
}

void pccl_loader_free_params(pccl_loader *loader) {
  for (size_t i = 0; i < loader->asked.len; i++) {
    free_entry(&loader->asked.data[i]);
  }
  pccl_vec_free(&loader->asked);
}

/* ---- the list for the caller ---- */

static size_t bytes_of(const char *text) { return text != NULL ? strlen(text) + 1 : 0; }

static const char *copy_text(char **at, const char *text) {
  if (text == NULL) {
    return NULL;
  }
  char *start = *at;
  size_t bytes = strlen(text) + 1;
  memcpy(start, text, bytes);
  *at += bytes;
  return start;
}

polyccl_result pccl_loader_list_params(const pccl_loader *loader, polyccl_param_info **infos, size_t *count) {
  size_t bytes = loader->asked.len * sizeof **infos;
  for (size_t i = 0; i < loader->asked.len; i++) {
    const pccl_param_entry *entry = &loader->asked.data[i];
    bytes += bytes_of(entry->name) + bytes_of(entry->value) + bytes_of(entry->default_value) + bytes_of(entry->help);
  }
  polyccl_param_info *list = malloc(bytes + 1);
  if (list == NULL) {
    return pccl_no_memory("a list of parameters");
  }
  char *at = (char *)(list + loader->asked.len);
  for (size_t i = 0; i < loader->asked.len; i++) {
    const pccl_param_entry *entry = &loader->asked.data[i];
    list[i].name = copy_text(&at, entry->name);
    list[i].value = copy_text(&at, entry->value);
    list[i].default_value = copy_text(&at, entry->default_value);
    list[i].help = copy_text(&at, entry->help);
  }
  *infos = list;
  *count = loader->asked.len;
  return POLYCCL_SUCCESS;
}
