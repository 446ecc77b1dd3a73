/* The image of a plan: what all its ranks run, made and proved once, in one block without pointers.
 *
 * Threads share it as it lies in memory, processes through the communicator's shared memory, later processes through a
 * file. Ranks only read it; each finds its own part by its record. A block that comes from elsewhere is checked before
 * it is used: the whole by its checksum where it comes from a file, and every index of a part before a rank takes it.
 */
#ifndef PCCL_EXECUTOR_IMAGE_H
#define PCCL_EXECUTOR_IMAGE_H

#include "executor/plans.h"

enum { PCCL_IMAGE_KEY_BYTES = 208, PCCL_IMAGE_TEXT_BYTES = 320 };

/* Indices of the first element in the whole image's arrays; indices within the part count from there. */
typedef struct pccl_image_rank {
  uint64_t tb, step, wait, link, addend;
  uint32_t tbs, steps, waits, links;
  uint64_t addends;
  int32_t chunks[PCCL_BUFFERS];
  uint8_t uses[PCCL_BUFFERS], unused;
} pccl_image_rank;

typedef struct pccl_image_head {
  char magic[8];
  uint64_t format; /* of this block */
  uint64_t bytes;
  uint64_t checksum; /* of all that follows */
  char key[PCCL_IMAGE_KEY_BYTES];
  /* SUCCESS, or why there is no plan for the key; then nothing follows the head. */
  int32_t result;
  char text[PCCL_IMAGE_TEXT_BYTES]; /* the plan's name, or the error */
  uint64_t fingerprint;
  pccl_collective_spec spec;
  int32_t ranks, protocol, order;
  uint32_t redops;
  uint64_t min_bytes, max_bytes;
  uint8_t uneven, reduces, lends, averages, uniform, alias_safe;
  int32_t largest;
  uint32_t depth;
  int32_t log2_ring;
  /* Elements of the arrays, which follow in this order, each at a multiple of 8. */
  uint64_t tbs, steps, waits, links, addends;
} pccl_image_head;

typedef struct pccl_image {
  atomic_int references;
  const pccl_image_head *head;
  bool lent;   /* of a communicator's shared memory, which must not outlive the communicator */
  void *owner; /* what is given back with the last reference */
  void (*give_back)(void *owner);
} pccl_image;

/* Proves the plan and makes the image of all its ranks' parts. `buffer_bytes` bounds the slots of a rank's receiving
 * ends. */
polyccl_result pccl_image_make(const char *key, const polyccl_plan *plan, size_t buffer_bytes, pccl_image **image);
/* The image that says that there is no plan. */
polyccl_result pccl_image_refuse(const char *key, polyccl_result result, const char *text, pccl_image **image);

/* A block of which `give_back` takes `owner`, also when this fails. The head is checked, and with `whole` the
 * checksum; INVALID, not logged: it is no image of this key. */
polyccl_result pccl_image_open(const void *block, size_t bytes, const char *key, bool whole, void *owner,
                               void (*give_back)(void *), pccl_image **image);
pccl_image *pccl_image_keep(pccl_image *image);
void pccl_image_release(pccl_image *image); /* NULL is allowed */

/* The part of `rank`; the caller owns a reference. The error of an image that says that there is no plan. */
polyccl_result pccl_image_part(pccl_image *image, int rank, pccl_loaded **loaded);

/* Whether it is the head of an image of this key that has `bytes` bytes. */
bool pccl_image_head_is_right(const pccl_image_head *head, size_t bytes, const char *key);

/* Whether every index of every rank's part is in range. */
bool pccl_image_is_right(const pccl_image *image);

uint64_t pccl_image_checksum(const pccl_image_head *head);

/* Fills in what identifies a block that is otherwise there; takes over the block, which free() gives back. */
polyccl_result pccl_image_seal(pccl_image_head *head, const char *key, pccl_image **image);

/* Bytes of the block that the counts in the head make; 0: more than memory can hold. */
size_t pccl_image_bytes(const pccl_image_head *head);

/* The arrays behind the head. */
typedef struct pccl_image_arrays {
  pccl_image_rank *rank;
  pccl_loaded_tb *tb;
  pccl_loaded_step *step;
  polyccl_wait *wait;
  pccl_link *link;
  uint64_t *addend;
} pccl_image_arrays;
pccl_image_arrays pccl_image_arrays_of(const pccl_image_head *head);

#endif
