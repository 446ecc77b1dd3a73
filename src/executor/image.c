#include "executor/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/size.h"
#include "base/vec.h"
#include "executor/generated.h"
#include "plan/plan.h"

enum { FORMAT = 1 };
static const char magic[8] = "pcclimg";

/* Another layout of what the block holds is another format. */
static uint64_t format_of(void) {
  uint64_t format = pccl_mix64(FORMAT);
  format = pccl_mix64(format ^ sizeof(pccl_image_head));
  format = pccl_mix64(format ^ sizeof(pccl_image_rank));
  return pccl_mix64(format ^ sizeof(pccl_loaded_step));
}

static bool add_array(size_t *bytes, uint64_t count, size_t element) {
  size_t array;
  return count <= SIZE_MAX && !__builtin_mul_overflow((size_t)count, element, &array) && array <= SIZE_MAX - 8 &&
         !__builtin_add_overflow(*bytes, pccl_round_up(array, 8), bytes);
}

size_t pccl_image_bytes(const pccl_image_head *head) {
  size_t bytes = pccl_round_up(sizeof *head, 8);
  bool fits = head->ranks >= 0 && add_array(&bytes, (uint64_t)head->ranks, sizeof(pccl_image_rank)) &&
              add_array(&bytes, head->tbs, sizeof(pccl_loaded_tb)) &&
              add_array(&bytes, head->steps, sizeof(pccl_loaded_step)) &&
              add_array(&bytes, head->waits, sizeof(polyccl_wait)) &&
              add_array(&bytes, head->links, sizeof(pccl_link)) && add_array(&bytes, head->addends, sizeof(uint64_t));
  return fits ? bytes : 0;
}

pccl_image_arrays pccl_image_arrays_of(const pccl_image_head *head) {
  char *at = (char *)(uintptr_t)head + pccl_round_up(sizeof *head, 8);
  pccl_image_arrays arrays;
  arrays.rank = (void *)at;
  at += pccl_round_up((size_t)head->ranks * sizeof *arrays.rank, 8);
  arrays.tb = (void *)at;
  at += pccl_round_up((size_t)head->tbs * sizeof *arrays.tb, 8);
  arrays.step = (void *)at;
  at += pccl_round_up((size_t)head->steps * sizeof *arrays.step, 8);
  arrays.wait = (void *)at;
  at += pccl_round_up((size_t)head->waits * sizeof *arrays.wait, 8);
  arrays.link = (void *)at;
  at += pccl_round_up((size_t)head->links * sizeof *arrays.link, 8);
  arrays.addend = (void *)at;
  return arrays;
}

/* Every step of it can be undone, so another word anywhere gives another sum. */
uint64_t pccl_image_checksum(const pccl_image_head *head) {
  const char *begin = (const char *)(&head->checksum + 1), *end = (const char *)head + head->bytes;
  return pccl_mix_bytes(pccl_mix64(head->bytes), begin, (size_t)(end - begin));
}

bool pccl_image_head_is_right(const pccl_image_head *head, size_t bytes, const char *key) {
  return memcmp(head->magic, magic, sizeof magic) == 0 && head->format == format_of() && head->bytes == bytes &&
         bytes % 8 == 0 && memchr(head->key, '\0', sizeof head->key) != NULL && strcmp(head->key, key) == 0 &&
         memchr(head->text, '\0', sizeof head->text) != NULL && pccl_image_bytes(head) == bytes;
}

polyccl_result pccl_image_open(const void *block, size_t bytes, const char *key, bool whole, void *owner,
                               void (*give_back)(void *), pccl_image **image) {
  const pccl_image_head *head = block;
  bool right = bytes >= sizeof *head && pccl_image_head_is_right(head, bytes, key) &&
               (!whole || pccl_image_checksum(head) == head->checksum);
  pccl_image *made = right ? pccl_zeroed(1, sizeof *made) : NULL;
  if (made == NULL) {
    give_back(owner);
    return right ? pccl_no_memory("a plan's image") : POLYCCL_ERROR_INVALID;
  }
  atomic_init(&made->references, 1);
  made->head = head;
  made->owner = owner;
  made->give_back = give_back;
  *image = made;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_image_seal(pccl_image_head *head, const char *key, pccl_image **image) {
  memcpy(head->magic, magic, sizeof magic);
  head->format = format_of();
  head->bytes = pccl_image_bytes(head);
  memcpy(head->key, key, strlen(key) + 1);
  head->checksum = pccl_image_checksum(head);
  return pccl_image_open(head, head->bytes, key, false, head, free, image);
}

pccl_image *pccl_image_keep(pccl_image *image) {
  atomic_fetch_add_explicit(&image->references, 1, memory_order_relaxed);
  return image;
}

void pccl_image_release(pccl_image *image) {
  if (image != NULL && atomic_fetch_sub_explicit(&image->references, 1, memory_order_acq_rel) == 1) {
    image->give_back(image->owner);
    free(image);
  }
}

polyccl_result pccl_image_refuse(const char *key, polyccl_result result, const char *text, pccl_image **image) {
  pccl_image_head *head = pccl_zeroed(1, pccl_round_up(sizeof *head, 8));
  if (head == NULL) {
    return pccl_no_memory("a plan's image");
  }
  head->result = (int32_t)result;
  snprintf(head->text, sizeof head->text, "%s", text);
  return pccl_image_seal(head, key, image);
}

/* ---- a rank's part ---- */

static bool has_range(uint64_t first, uint64_t count, uint64_t length) {
  return first <= length && count <= length - first;
}

static bool is_place_right(pccl_chunk_place place, int32_t count, const int32_t *chunks) {
  return place.buffer == -1 || ((uint32_t)place.buffer < PCCL_BUFFERS && place.chunk >= 0 && count >= 0 &&
                                (chunks == NULL || (int64_t)place.chunk + count <= chunks[place.buffer]));
}

/* What the executor indexes with. That the plan is right was proved before the image was made. */
static bool is_step_right(const pccl_image_head *head, const pccl_image_rank *part, const pccl_loaded_step *step) {
  if (step->op >= POLYCCL_STEP_OP_COUNT || step->count < 0 || step->count > head->largest) {
    return false;
  }
  const pccl_op_traits *traits = &pccl_ops[step->op];
  uint64_t addends = head->averages && traits->reduces ? (uint64_t)step->count : 0;
  return traits->receives == (step->recv >= 0) && traits->sends == (step->send >= 0) &&
         traits->reads_src == (step->src.buffer >= 0) && traits->writes_dst == (step->dst.buffer >= 0) &&
         step->recv < (int64_t)part->links && step->send < (int64_t)part->links && step->wait >= 0 &&
         step->waits >= 0 && has_range((uint64_t)step->wait, (uint64_t)step->waits, part->waits) &&
         has_range(step->addends, addends, part->addends) && is_place_right(step->src, step->count, part->chunks) &&
         is_place_right(step->dst, step->count, part->chunks) && is_place_right(step->remote_src, step->count, NULL) &&
         is_place_right(step->remote_dst, step->count, NULL);
}

static bool are_links_right(const pccl_image_head *head, int rank, const pccl_link *link, uint32_t links) {
  for (uint32_t i = 0; i < links; i++) {
    if (link[i].src < 0 || link[i].src >= head->ranks || link[i].dst < 0 || link[i].dst >= head->ranks ||
        link[i].src == link[i].dst || (link[i].src != rank && link[i].dst != rank) || link[i].channel < 0 ||
        link[i].channel > PCCL_MAX_PLAN_CHANNEL) {
      return false;
    }
  }
  return true;
}

static bool are_waits_right(const pccl_image_rank *part, const pccl_loaded_tb *tb, const polyccl_wait *wait) {
  for (uint32_t i = 0; i < part->waits; i++) {
    if (wait[i].tb < 0 || (uint32_t)wait[i].tb >= part->tbs || wait[i].step < 0 ||
        (uint32_t)wait[i].step >= tb[wait[i].tb].steps) {
      return false;
    }
  }
  return true;
}

static bool is_part_right(const pccl_image_head *head, int rank, const pccl_image_rank *part) {
  pccl_image_arrays all = pccl_image_arrays_of(head);
  if (!has_range(part->tb, part->tbs, head->tbs) || !has_range(part->step, part->steps, head->steps) ||
      !has_range(part->wait, part->waits, head->waits) || !has_range(part->link, part->links, head->links) ||
      !has_range(part->addend, part->addends, head->addends) || head->largest < 1 || head->depth == 0 ||
      (head->depth & (head->depth - 1)) != 0 || head->log2_ring < 1 || head->log2_ring > 36 ||
      (unsigned)head->protocol >= POLYCCL_PROTOCOL_COUNT || (unsigned)head->order > POLYCCL_TASK_MAJOR ||
      head->spec.ranks != head->ranks || pccl_collective_validate(&head->spec) != POLYCCL_SUCCESS) {
    return false;
  }
  for (uint32_t t = 0; t < part->tbs; t++) {
    const pccl_loaded_tb *tb = &all.tb[part->tb + t];
    if (!has_range(tb->step, tb->steps, part->steps)) {
      return false;
    }
  }
  for (uint32_t s = 0; s < part->steps; s++) {
    if (!is_step_right(head, part, &all.step[part->step + s])) {
      return false;
    }
  }
  return are_links_right(head, rank, all.link + part->link, part->links) &&
         are_waits_right(part, all.tb + part->tb, all.wait + part->wait);
}

bool pccl_image_is_right(const pccl_image *image) {
  const pccl_image_head *head = image->head;
  bool right = head->result == POLYCCL_SUCCESS;
  for (int32_t rank = 0; right && rank < head->ranks; rank++) {
    right = is_part_right(head, rank, &pccl_image_arrays_of(head).rank[rank]);
  }
  return right;
}

static void view_part(pccl_image *image, int rank, pccl_loaded *loaded) {
  const pccl_image_head *head = image->head;
  pccl_image_arrays all = pccl_image_arrays_of(head);
  const pccl_image_rank *part = &all.rank[rank];
  loaded->id = -1;
  loaded->fingerprint = head->fingerprint;
  loaded->spec = head->spec;
  loaded->protocol = (polyccl_protocol)head->protocol;
  loaded->order = (polyccl_loop_order)head->order;
  loaded->min_bytes = head->min_bytes;
  loaded->max_bytes = head->max_bytes;
  loaded->redops = head->redops;
  loaded->uneven = head->uneven != 0;
  loaded->reduces = head->reduces != 0;
  loaded->lends = head->lends != 0;
  loaded->averages = head->averages != 0;
  loaded->uniform = head->uniform != 0;
  loaded->alias_safe = head->alias_safe != 0;
  loaded->largest = head->largest;
  loaded->depth = head->depth;
  loaded->log2_ring = head->log2_ring;
  for (int b = 0; b < PCCL_BUFFERS; b++) {
    loaded->uses[b] = part->uses[b] != 0;
    loaded->chunks[b] = part->chunks[b];
  }
  loaded->tbs = part->tbs;
  loaded->steps = part->steps;
  loaded->waits = part->waits;
  loaded->links = part->links;
  loaded->tb = all.tb + part->tb;
  loaded->step = all.step + part->step;
  loaded->wait = all.wait + part->wait;
  loaded->link = all.link + part->link;
  loaded->addends = all.addend + part->addend;
  loaded->image = pccl_image_keep(image);
}

polyccl_result pccl_image_part(pccl_image *image, int rank, pccl_loaded **loaded) {
  const pccl_image_head *head = image->head;
  if (head->result != POLYCCL_SUCCESS) {
    return pccl_fail((polyccl_result)head->result, "%s", head->text);
  }
  if (rank >= head->ranks || !is_part_right(head, rank, &pccl_image_arrays_of(head).rank[rank])) {
    return pccl_fail(POLYCCL_ERROR_INTERNAL, "the image of plan \"%s\" is damaged", head->text);
  }
  pccl_loaded *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL || (made->name = pccl_strdup(head->text)) == NULL) {
    free(made);
    return pccl_no_memory("a loaded plan");
  }
  atomic_init(&made->references, 1);
  view_part(image, rank, made);
  *loaded = made;
  return POLYCCL_SUCCESS;
}

pccl_loaded *pccl_loaded_keep(pccl_loaded *loaded) {
  atomic_fetch_add_explicit(&loaded->references, 1, memory_order_relaxed);
  return loaded;
}

void pccl_loaded_release(pccl_loaded *loaded) {
  if (loaded != NULL && atomic_fetch_sub_explicit(&loaded->references, 1, memory_order_acq_rel) == 1) {
    pccl_generated_free(loaded->generated);
    free(loaded->name);
    pccl_image_release(loaded->image);
    free(loaded);
  }
}
