/* A hash table from 64-bit keys to 64-bit values, with open addressing and without deletion, for the inner loops of the
 * compiler. */
#ifndef PCCL_BASE_MAP_H
#define PCCL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct pccl_map {
  uint64_t *slots; /* pairs key + 1, value; key + 1 == 0: empty */
  size_t capacity; /* a power of two, or 0 */
  size_t used;
} pccl_map;

/* Returns the address of the value, valid until the next pccl_map_put(), or NULL if the key is absent. Keys are below
 * UINT64_MAX. */
uint64_t *pccl_map_get(const pccl_map *map, uint64_t key);
/* The same, but adds the value `initial` if the key is new; NULL if there is no memory. is_new may be NULL. */
uint64_t *pccl_map_put(pccl_map *map, uint64_t key, uint64_t initial, bool *is_new);
void pccl_map_free(pccl_map *map);

/* Mixes the bits of a key: one step of SplitMix64 (Steele, Lea and Flood, 2014). */
static inline uint64_t pccl_mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* Mixes bytes into a digest, a word at a time; the last word is filled up with zeros. */
static inline uint64_t pccl_mix_bytes(uint64_t digest, const void *data, size_t bytes) {
  const char *at = data;
  for (size_t done = 0; done < bytes; done += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, at + done, bytes - done < sizeof word ? bytes - done : sizeof word);
    digest = pccl_mix64(digest ^ word);
  }
  return digest;
}

#endif
