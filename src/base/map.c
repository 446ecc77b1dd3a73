#include "base/map.h"

#include <stdlib.h>

#include "base/vec.h"

static size_t find_slot(const pccl_map *map, uint64_t key) {
  size_t mask = map->capacity - 1;
  size_t i = (size_t)pccl_mix64(key) & mask;
  while (map->slots[2 * i] != 0 && map->slots[2 * i] != key + 1) {
    i = (i + 1) & mask;
  }
  return i;
}

uint64_t *pccl_map_get(const pccl_map *map, uint64_t key) {
  if (map->capacity == 0) {
    return NULL;
  }
  size_t i = find_slot(map, key);
  return map->slots[2 * i] != 0 ? &map->slots[2 * i + 1] : NULL;
}

static bool grow_map(pccl_map *map) {
  enum { FIRST = 16 };
  pccl_map next = {.capacity = map->capacity != 0 ? map->capacity * 2 : FIRST, .used = map->used};
  next.slots = pccl_zeroed(next.capacity, 2 * sizeof *next.slots);
  if (next.slots == NULL) {
    return false;
  }
  for (size_t i = 0; i < map->capacity; i++) {
    if (map->slots[2 * i] != 0) {
      size_t j = find_slot(&next, map->slots[2 * i] - 1);
      next.slots[2 * j] = map->slots[2 * i];
      next.slots[2 * j + 1] = map->slots[2 * i + 1];
    }
  }
  free(map->slots);
  *map = next;
  return true;
}

uint64_t *pccl_map_put(pccl_map *map, uint64_t key, uint64_t initial, bool *is_new) {
  if (map->used * 2 >= map->capacity && !grow_map(map)) {
    return NULL;
  }
  size_t i = find_slot(map, key);
  bool fresh = map->slots[2 * i] == 0;
  if (fresh) {
    map->slots[2 * i] = key + 1;
    map->slots[2 * i + 1] = initial;
    map->used++;
  }
  if (is_new != NULL) {
    *is_new = fresh;
  }
  return &map->slots[2 * i + 1];
}

void pccl_map_free(pccl_map *map) {
  free(map->slots);
  *map = (pccl_map){0};
}
