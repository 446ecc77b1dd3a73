#include "executor/image_share.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/map.h"
#include "transport/shm/segment.h"
#include "transport/wait.h"

enum { LOOK_US = 50000 };

/* What a key's place in the shared memory holds. Zeroed at first. */
typedef enum share_state {
  SHARE_FREE = 0,
  SHARE_READY = 1,
  SHARE_TAKEN = 2 /* + the rank that makes it */
} share_state;

typedef struct share {
  _Atomic uint32_t state;
  _Atomic uint64_t bytes; /* of the image, before READY */
} share;

/* Connections' numbers have less than 62 bits. Two keys with one number are told apart by the image's key. */
static uint64_t number_of(const char *key, bool image) {
  uint64_t number = pccl_mix_bytes(0, key, strlen(key));
  return number >> 2 | (uint64_t)1 << 63 | (uint64_t)image << 62;
}

static bool has_other_processes(const pccl_member *member) {
  for (int rank = 0; rank < member->ranks; rank++) {
    if (!member->peer[rank].same_process) {
      return true;
    }
  }
  return false;
}

/* SUCCESS: the state is another one, or some time has passed. */
static polyccl_result wait_for_rank(pccl_member *member, share *cell, uint32_t state, uint64_t since) {
  pccl_futex_wait(&cell->state, state, LOOK_US);
  if (pccl_board_aborted(member->board)) {
    return pccl_board_error(member->board);
  }
  PCCL_TRY(pccl_look_at_peers(member));
  if (pccl_now() - since > member->timeout_ns) {
    pccl_board_abort(member->board, POLYCCL_ERROR_TIMEOUT, "rank %d waited %llu s for rank %d to compile a plan",
                     member->rank, (unsigned long long)(member->timeout_ns / 1000000000u), (int)(state - SHARE_TAKEN));
    return pccl_board_error(member->board);
  }
  return POLYCCL_SUCCESS;
}

static void release_segment(void *segment) { pccl_segment_release(segment); }

/* *image stays NULL if what is there is the image of another key. */
static polyccl_result take_image(pccl_member *member, const share *cell, const char *key, pccl_image **image) {
  size_t bytes = (size_t)atomic_load_explicit(&cell->bytes, memory_order_relaxed);
  void *block;
  PCCL_TRY(pccl_segment_find(member->segment, number_of(key, true), bytes, &block));
  polyccl_result result =
      pccl_image_open(block, bytes, key, false, pccl_segment_share(member->segment), release_segment, image);
  if (result == POLYCCL_SUCCESS) {
    (*image)->lent = true;
  }
  return result == POLYCCL_ERROR_INVALID ? POLYCCL_SUCCESS : result;
}

static void end_making(share *cell, uint32_t state) {
  atomic_store_explicit(&cell->state, state, memory_order_release);
  pccl_futex_wake(&cell->state);
}

/* Without room for the copy the others make their own. */
static void leave_image(pccl_member *member, share *cell, const char *key, const pccl_image *image) {
  void *block;
  size_t bytes = (size_t)image->head->bytes;
  if (pccl_segment_find(member->segment, number_of(key, true), bytes, &block) != POLYCCL_SUCCESS) {
    end_making(cell, SHARE_FREE);
    return;
  }
  memcpy(block, image->head, bytes);
  atomic_store_explicit(&cell->bytes, bytes, memory_order_relaxed);
  end_making(cell, SHARE_READY);
}

polyccl_result pccl_image_share(pccl_member *member, const char *key, pccl_image_maker make, void *context,
                                pccl_image **image) {
  void *place;
  if (member->segment == NULL || !has_other_processes(member) ||
      pccl_segment_find(member->segment, number_of(key, false), sizeof(share), &place) != POLYCCL_SUCCESS) {
    return make(context, key, image);
  }
  share *cell = place;
  uint64_t since = pccl_now();
  uint32_t state = atomic_load_explicit(&cell->state, memory_order_acquire);
  for (;;) {
    if (state == SHARE_FREE) {
      if (atomic_compare_exchange_strong(&cell->state, &state, SHARE_TAKEN + (uint32_t)member->rank)) {
        break;
      }
    } else if (state == SHARE_READY) {
      pccl_image *found = NULL;
      PCCL_TRY(take_image(member, cell, key, &found));
      if (found == NULL) {
        return make(context, key, image);
      }
      *image = found;
      return POLYCCL_SUCCESS;
    } else {
      PCCL_TRY(wait_for_rank(member, cell, state, since));
      state = atomic_load_explicit(&cell->state, memory_order_acquire);
    }
  }
  polyccl_result result = make(context, key, image);
  if (result == POLYCCL_SUCCESS) {
    leave_image(member, cell, key, *image);
  } else {
    end_making(cell, SHARE_FREE); /* the next takes over */
  }
  return result;
}
