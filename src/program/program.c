/* A program as an object: its creation and end, its source places, the names of its chunks. operations.c adds to it. */
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"

static polyccl_result check_config(const polyccl_program_config *config, pccl_collective_spec *spec) {
  *spec = (pccl_collective_spec){.kind = config->collective,
                                 .ranks = config->ranks,
                                 .chunks = config->chunks,
                                 .chunks_out = config->chunks_out,
                                 .inplace = config->inplace,
                                 .root = config->root,
                                 .peer = config->peer};
  PCCL_TRY(pccl_collective_validate(spec));
  if (config->instances < 0 || config->instances > 1024) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "instances = %d is out of range (1 to 1024)", config->instances);
  }
  if ((unsigned)config->protocol >= POLYCCL_PROTOCOL_COUNT || (unsigned)config->replication > POLYCCL_BATCHED) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "unknown protocol or replication");
  }
  if (config->max_bytes != 0 && config->min_bytes > config->max_bytes) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "minbytes %zu is above maxbytes %zu", config->min_bytes, config->max_bytes);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_program_create(const polyccl_program_config *given, polyccl_program **program) {
  polyccl_program_config own = {.size = sizeof own};
  PCCL_TRY(pccl_sized_read("polyccl_program_config", given, &own, sizeof own, sizeof own));
  const polyccl_program_config *config = &own;
  pccl_collective_spec spec;
  PCCL_TRY(check_config(config, &spec));
  uint64_t cells = (uint64_t)pccl_collective_cells(&spec) * (uint64_t)config->ranks;
  if (cells > PCCL_MAX_CELLS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "the buffers of %d ranks have %llu chunks in all, %d on a rank; at most %d are supported: use "
                     "fewer ranks or chunks",
                     config->ranks, (unsigned long long)cells, pccl_collective_cells(&spec), PCCL_MAX_CELLS);
  }
  polyccl_program *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a program");
  }
  made->config = *config;
  made->config.instances = config->instances > 0 ? config->instances : 1;
  made->spec = spec;
  made->name = pccl_strdup(config->name != NULL ? config->name : polyccl_collective_name(config->collective));
  made->config.name = made->name;
  made->refine = made->config.instances;
  pccl_collective_shape(&spec, &made->input, &made->output);
  made->cells = pccl_collective_cells(&spec);
  bool ok = made->name != NULL && pccl_vec_push(&made->parallel, 1) &&
            pccl_vec_reserve(&made->written, (size_t)config->ranks);
  for (int rank = 0; ok && rank < config->ranks; rank++) {
    uint64_t *written = pccl_zeroed((size_t)made->cells, sizeof *written);
    ok = written != NULL && pccl_vec_push(&made->written, written);
  }
  if (!ok) {
    polyccl_program_destroy(made);
    return pccl_no_memory("the chunks of a program");
  }
  *program = made;
  return POLYCCL_SUCCESS;
}

void polyccl_program_destroy(polyccl_program *program) {
  if (program == NULL) {
    return;
  }
  for (size_t i = 0; i < program->scratch.len; i++) {
    free(program->scratch.data[i].name);
    free(program->scratch.data[i].length);
  }
  for (size_t i = 0; i < program->files.len; i++) {
    free(program->files.data[i]);
  }
  for (size_t i = 0; i < program->written.len; i++) {
    free(program->written.data[i]);
  }
  for (size_t i = 0; i < program->scratch_written.len; i++) {
    free(program->scratch_written.data[i]);
  }
  pccl_vec_free(&program->operations);
  pccl_vec_free(&program->scratch);
  pccl_vec_free(&program->locations);
  pccl_vec_free(&program->files);
  pccl_vec_free(&program->written);
  pccl_vec_free(&program->scratch_written);
  pccl_vec_free(&program->scratch_room);
  pccl_map_free(&program->scratch_index);
  pccl_vec_free(&program->parallel);
  pccl_vec_free(&program->transfers);
  pccl_vec_free(&program->post_lists);
  pccl_vec_free(&program->post_leaves);
  pccl_contents_free(program->contents);
  pccl_map_free(&program->links);
  polyccl_topology_destroy(program->topology);
  pccl_map_free(&program->line_index);
  pccl_map_free(&program->absent);
  pccl_map_free(&program->posts);
  free(program->name);
  free(program);
}

const polyccl_program_config *polyccl_program_get_config(const polyccl_program *program) { return &program->config; }

/* ---- source places ---- */

static int32_t intern_file(polyccl_program *program, const char *file) {
  size_t files = program->files.len;
  /* The last file first: nearly always the same as before. */
  for (size_t i = files; i-- > 0;) {
    if (strcmp(program->files.data[i], file) == 0) {
      return (int32_t)i;
    }
  }
  char *copy = pccl_strdup(file);
  if (copy == NULL || !pccl_vec_push(&program->files, copy)) {
    free(copy);
    return -1;
  }
  return (int32_t)files;
}

const char *pccl_program_file(polyccl_program *program, const char *file) {
  int32_t number = intern_file(program, file != NULL ? file : "");
  return number >= 0 ? program->files.data[number] : NULL;
}

int32_t pccl_program_intern_location(polyccl_program *program, polyccl_location at) {
  int32_t file = intern_file(program, at.file != NULL ? at.file : "");
  if (file < 0) {
    return -1;
  }
  bool is_new;
  uint64_t *slot =
      pccl_map_put(&program->line_index, ((uint64_t)file << 32) | (uint32_t)at.line, program->locations.len, &is_new);
  if (slot == NULL || (is_new && !pccl_vec_push(&program->locations, (pccl_line){file, at.line}))) {
    return -1;
  }
  return (int32_t)*slot;
}

polyccl_location pccl_program_location(const polyccl_program *program, int32_t location) {
  if (location < 0 || (size_t)location >= program->locations.len) {
    return (polyccl_location){NULL, 0};
  }
  pccl_line line = program->locations.data[location];
  const char *file = program->files.data[line.file];
  return (polyccl_location){file[0] != '\0' ? file : NULL, line.line};
}

const char *pccl_place_name(const polyccl_program *program, pccl_place place, int size, char *text, size_t bytes) {
  const char *buffer = place.buffer == POLYCCL_INPUT    ? "input"
                       : place.buffer == POLYCCL_OUTPUT ? "output"
                                                        : program->scratch.data[place.buffer - POLYCCL_SCRATCH].name;
  if (size > 1) {
    snprintf(text, bytes, "rank %d %.60s[%d..%lld]", place.rank, buffer, place.index,
             (long long)place.index + size - 1); /* neither is checked yet */
  } else {
    snprintf(text, bytes, "rank %d %.60s[%d]", place.rank, buffer, place.index);
  }
  return text;
}
