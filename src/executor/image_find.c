#include "executor/image_file.h"
#include "executor/image_share.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/vec.h"
#include "transport/wait.h"

/* Images of this process that no rank uses are kept for the next communicator, within these bounds. */
enum { MAX_UNUSED = 16, MAX_UNUSED_BYTES = 32 << 20, LOOK_MS = 50 };

/* One key. While `image` is NULL the thread of `rank` in process `pid` sees to it. */
typedef struct table_entry {
  struct table_entry *next; /* newest first */
  char key[PCCL_IMAGE_KEY_BYTES];
  pccl_image *image;
  int rank;
  pid_t pid;
} table_entry;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  table_entry *first;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* A child of fork() finds the table whole. What another thread was making, nobody makes there. */
static void lock_table(void) { pthread_mutex_lock(&table.lock); }
static void unlock_table(void) { pthread_mutex_unlock(&table.lock); }
static void renew_table(void) {
  pthread_cond_init(&table.changed, NULL);
  pthread_mutex_unlock(&table.lock);
}
static void watch_forks(void) { pthread_atfork(lock_table, unlock_table, renew_table); }
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

static table_entry *find_entry(const char *key) {
  table_entry *entry = table.first;
  while (entry != NULL && strcmp(entry->key, key) != 0) {
    entry = entry->next;
  }
  return entry;
}

static void remove_entry(table_entry *entry) {
  table_entry **link = &table.first;
  while (*link != entry) {
    link = &(*link)->next;
  }
  *link = entry->next;
  pccl_image_release(entry->image);
  free(entry);
}

/* Drops of those that only the table still refers to the oldest, and what is lent. */
static void trim_table(void) {
  size_t unused = 0, bytes = 0;
  for (table_entry *entry = table.first, *next; entry != NULL; entry = next) {
    next = entry->next;
    if (entry->image != NULL && atomic_load_explicit(&entry->image->references, memory_order_acquire) == 1) {
      unused++;
      bytes += (size_t)entry->image->head->bytes;
      if (entry->image->lent || unused > MAX_UNUSED || bytes > MAX_UNUSED_BYTES) {
        unused--;
        bytes -= (size_t)entry->image->head->bytes;
        remove_entry(entry);
      }
    }
  }
}

void pccl_images_trim(void) {
  pthread_mutex_lock(&table.lock);
  trim_table();
  pthread_mutex_unlock(&table.lock);
}

/* With the lock held: waits a little for the one who makes the entry, and looks whether to give up. */
static polyccl_result wait_for_maker(pccl_member *member, const table_entry *entry, uint64_t since) {
  int rank = entry->rank;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += LOOK_MS * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  if (pthread_cond_timedwait(&table.changed, &table.lock, &until) == 0) {
    return POLYCCL_SUCCESS;
  }
  pthread_mutex_unlock(&table.lock);
  polyccl_result result =
      pccl_board_aborted(member->board) ? pccl_board_error(member->board) : pccl_look_at_peers(member);
  if (result == POLYCCL_SUCCESS && pccl_now() - since > member->timeout_ns) {
    result = pccl_fail(POLYCCL_ERROR_TIMEOUT, "rank %d waited %llu s for rank %d of this process to compile a plan",
                       member->rank, (unsigned long long)(member->timeout_ns / 1000000000u), rank);
  }
  pthread_mutex_lock(&table.lock);
  return result;
}

/* With the lock held. SUCCESS with *image NULL: the caller shall make it, and its entry is in *mine. */
static polyccl_result claim_entry(pccl_member *member, const char *key, table_entry **mine, pccl_image **image) {
  uint64_t since = pccl_now();
  for (;;) {
    table_entry *entry = find_entry(key);
    if (entry != NULL && entry->image != NULL) {
      *image = pccl_image_keep(entry->image);
      return POLYCCL_SUCCESS;
    }
    if (entry != NULL && entry->pid == getpid()) {
      PCCL_TRY(wait_for_maker(member, entry, since));
      continue;
    }
    if (entry == NULL) {
      entry = pccl_zeroed(1, sizeof *entry);
      if (entry == NULL) {
        return pccl_no_memory("the table of plans");
      }
      memcpy(entry->key, key, strlen(key) + 1);
      entry->next = table.first;
      table.first = entry;
    }
    entry->rank = member->rank;
    entry->pid = getpid();
    *mine = entry;
    return POLYCCL_SUCCESS;
  }
}

typedef struct making {
  pccl_image_maker make;
  void *context;
} making;

static polyccl_result read_or_make(void *context, const char *key, pccl_image **image) {
  const making *m = context;
  PCCL_TRY(pccl_image_read(key, image));
  if (*image == NULL) {
    PCCL_TRY(m->make(m->context, key, image));
    pccl_image_write(*image);
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_image_find(pccl_member *member, const char *key, pccl_image_maker make, void *context,
                               pccl_image **image) {
  pthread_once(&watch_once, watch_forks);
  table_entry *mine = NULL;
  pccl_image *found = NULL;
  pthread_mutex_lock(&table.lock);
  trim_table();
  polyccl_result result = claim_entry(member, key, &mine, &found);
  pthread_mutex_unlock(&table.lock);
  if (result != POLYCCL_SUCCESS || mine == NULL) {
    *image = result == POLYCCL_SUCCESS ? found : *image;
    return result;
  }
  result = pccl_image_share(member, key, read_or_make, &(making){make, context}, &found);
  pthread_mutex_lock(&table.lock);
  if (result == POLYCCL_SUCCESS) {
    mine->image = pccl_image_keep(found);
    *image = found;
  } else {
    remove_entry(mine); /* the next takes over */
  }
  pthread_cond_broadcast(&table.changed);
  pthread_mutex_unlock(&table.lock);
  return result;
}
