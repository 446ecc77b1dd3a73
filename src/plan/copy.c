/* A plan's copy, array by array. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"

/* A copy of `count` elements; NULL: no memory. */
static void *copy_array(const void *from, size_t count, size_t element) {
  void *to = pccl_array(count, element);
  if (to != NULL && count > 0) {
    memcpy(to, from, count * element);
  }
  return to;
}

#define COPY_ARRAY(to, from, array, count) \
  (((to)->array = copy_array((from)->array, (count), sizeof *(from)->array)) != NULL)

static bool copy_arrays(polyccl_plan *to, const polyccl_plan *from) {
  return COPY_ARRAY(to, from, rank, (size_t)from->ranks) && COPY_ARRAY(to, from, tb, from->tbs) &&
         COPY_ARRAY(to, from, step, from->steps) && COPY_ARRAY(to, from, wait, from->waits);
}

static bool copy_tables(polyccl_plan *to, const polyccl_plan *from) {
  return COPY_ARRAY(to, from, connection, from->connections) && COPY_ARRAY(to, from, post, from->posts) &&
         COPY_ARRAY(to, from, leaf, from->leaves) && COPY_ARRAY(to, from, absent, from->absents) &&
         COPY_ARRAY(to, from, location, from->locations);
}

void pccl_plan_copy_head(const polyccl_plan *from, polyccl_plan *to) {
  to->collective = from->collective;
  to->chunks = from->chunks;
  to->chunks_out = from->chunks_out;
  to->inplace = from->inplace;
  to->root = from->root;
  to->peer = from->peer;
  to->protocol = from->protocol;
  to->order = from->order;
  to->min_bytes = from->min_bytes;
  to->max_bytes = from->max_bytes;
  to->redops = from->redops;
}

static bool copy_names(polyccl_plan *to, const polyccl_plan *from) {
  to->name = pccl_strdup(from->name);
  to->file = pccl_zeroed(from->files, sizeof *to->file);
  bool ok = (to->name != NULL || from->name == NULL) && to->file != NULL;
  for (; ok && to->files < from->files; to->files++) {
    to->file[to->files] = pccl_strdup(from->file[to->files]);
    ok = to->file[to->files] != NULL;
  }
  return ok;
}

polyccl_result pccl_plan_copy_tables(const polyccl_plan *from, polyccl_plan *to) {
  to->connections = from->connections;
  to->posts = from->posts;
  to->leaves = from->leaves;
  to->absents = from->absents;
  to->locations = from->locations;
  return copy_tables(to, from) && copy_names(to, from) ? POLYCCL_SUCCESS : pccl_no_memory("a copy of a plan");
}

polyccl_result pccl_plan_copy(const polyccl_plan *plan, polyccl_plan **copy) {
  polyccl_plan *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a copy of a plan");
  }
  *made = *plan;
  made->name = NULL;
  made->rank = NULL, made->tb = NULL, made->step = NULL, made->wait = NULL, made->connection = NULL;
  made->post = NULL, made->leaf = NULL, made->absent = NULL, made->location = NULL;
  made->file = NULL, made->files = 0;
  if (!copy_arrays(made, plan) || !copy_tables(made, plan) || !copy_names(made, plan)) {
    polyccl_plan_destroy(made);
    return pccl_no_memory("a copy of a plan");
  }
  *copy = made;
  return POLYCCL_SUCCESS;
}
