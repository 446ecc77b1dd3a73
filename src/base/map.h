/* A hash table from 64-bit keys to 64-bit values: open addressing, no deletion. Made for the compiler's inner loops,
 * where a node per entry would cost more than the work. */
#ifndef PCCL_BASE_MAP_H
#define PCCL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pccl_map {
  uint64_t *slots; /* pairs key + 1, value; key + 1 == 0: empty */
  size_t capacity; /* a power of two, or 0 */
  size_t used;
} pccl_map;

/* The value's place, NULL when the key is absent. Valid until the next pccl_map_put. Keys below UINT64_MAX. */
uint64_t *pccl_map_get(const pccl_map *map, uint64_t key);
/* The value's place, made with `initial` where the key is new; NULL: no memory. */
uint64_t *pccl_map_put(pccl_map *map, uint64_t key, uint64_t initial, bool *is_new);
void pccl_map_free(pccl_map *map);

/* A good 64-bit mix (the finaliser of SplitMix64). */
static inline uint64_t pccl_mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

#endif
