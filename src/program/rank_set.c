#include "program/rank_set.h"

#include <stdlib.h>

enum { EMPTY = 0, WORD_BITS = 32 };

void pccl_rank_sets_free(pccl_rank_sets *sets) {
  pccl_vec_free(&sets->node);
  pccl_map_free(&sets->words);
  pccl_map_free(&sets->pairs);
  pccl_map_free(&sets->unions);
}

/* The number of the node with this content, new or known. */
static int32_t intern_node(pccl_rank_sets *sets, pccl_map *known, uint64_t content) {
  bool is_new;
  uint64_t *number = pccl_map_put(known, content, sets->node.len + 1, &is_new);
  if (number == NULL || sets->node.len >= INT32_MAX || (is_new && !pccl_vec_push(&sets->node, content))) {
    return PCCL_RANK_SET_NO_MEMORY;
  }
  return (int32_t)*number;
}

static uint64_t find_node_content(const pccl_rank_sets *sets, int32_t set) { return sets->node.data[set - 1]; }

/* Halvings from all ranks to one word. */
static int count_levels(const pccl_rank_sets *sets) {
  int level = 0;
  while ((int64_t)WORD_BITS << level < sets->ranks) {
    level++;
  }
  return level;
}

int32_t pccl_rank_set_of(pccl_rank_sets *sets, int32_t rank) {
  int32_t set = intern_node(sets, &sets->words, (uint64_t)1 << rank % WORD_BITS);
  int32_t word = rank / WORD_BITS;
  for (int level = count_levels(sets); set > 0 && level > 0; level--, word /= 2) {
    uint64_t number = (uint64_t)set;
    set = intern_node(sets, &sets->pairs, word % 2 == 0 ? number << 32 : number);
  }
  return set;
}

static int32_t unite_nodes(pccl_rank_sets *sets, int32_t a, int32_t b, int level);

static int32_t unite_halves(pccl_rank_sets *sets, int32_t a, int32_t b, int level) {
  uint64_t x = find_node_content(sets, a), y = find_node_content(sets, b);
  int32_t high = unite_nodes(sets, (int32_t)(x >> 32), (int32_t)(y >> 32), level - 1);
  int32_t low = high < 0 ? high : unite_nodes(sets, (int32_t)(uint32_t)x, (int32_t)(uint32_t)y, level - 1);
  return low < 0 ? low : intern_node(sets, &sets->pairs, (uint64_t)high << 32 | (uint64_t)low);
}

/* Recursion as deep as there are levels. */
static int32_t unite_nodes(pccl_rank_sets *sets, int32_t a, int32_t b, int level) {
  if (a == EMPTY || b == EMPTY) {
    return a == EMPTY ? b : a;
  }
  if (level == 0) {
    uint64_t x = find_node_content(sets, a), y = find_node_content(sets, b);
    return (x & y) != 0 ? PCCL_RANK_SET_OVERLAP : intern_node(sets, &sets->words, x | y);
  }
  uint64_t key = a < b ? (uint64_t)a << 32 | (uint64_t)b : (uint64_t)b << 32 | (uint64_t)a;
  const uint64_t *known = pccl_map_get(&sets->unions, key);
  if (known != NULL) {
    return (int32_t)(uint32_t)*known;
  }
  sets->work++;
  int32_t made = unite_halves(sets, a, b, level);
  if (made != PCCL_RANK_SET_NO_MEMORY && pccl_map_put(&sets->unions, key, (uint32_t)made, NULL) == NULL) {
    return PCCL_RANK_SET_NO_MEMORY;
  }
  return made;
}

int32_t pccl_rank_set_unite(pccl_rank_sets *sets, int32_t a, int32_t b) {
  return unite_nodes(sets, a, b, count_levels(sets));
}
