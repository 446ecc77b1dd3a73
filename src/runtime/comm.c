/* Communicators: unique ids, joining, leaving. */
#include "runtime/comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "runtime/builtin.h"
#include "runtime/plans.h"
#include "runtime/select.h"
#include "runtime/wait.h"

/* What an id's bytes hold. */
typedef struct id_content {
  char magic[8];
  int32_t pid, fd;
  unsigned char cookie[PCCL_COOKIE_BYTES];
} id_content;
static const char id_magic[8] = "polyccl";

/* Segments that this process made ids for and no rank of it has joined yet; they keep the descriptor open. */
static struct {
  pthread_mutex_t lock;
  PCCL_VEC(pccl_segment *) segments;
} offered = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Those not yet destroyed. */
static struct {
  pthread_mutex_t lock;
  polyccl_comm *first;
} living = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void enter_living(polyccl_comm *comm) {
  pthread_mutex_lock(&living.lock);
  comm->next = living.first;
  living.first = comm;
  pthread_mutex_unlock(&living.lock);
}

static bool leave_living(polyccl_comm *comm) {
  pthread_mutex_lock(&living.lock);
  polyccl_comm **link = &living.first;
  while (*link != NULL && *link != comm) {
    link = &(*link)->next;
  }
  bool found = *link != NULL;
  if (found) {
    *link = comm->next;
  }
  pthread_mutex_unlock(&living.lock);
  return found;
}

static atomic_uint forks;
static void count_fork(void) { atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;

polyccl_result pccl_offer(polyccl_unique_id *id, pccl_segment **segment) {
  pccl_segment *made;
  PCCL_TRY(pccl_segment_create(&made));
  pthread_mutex_lock(&offered.lock);
  bool kept = pccl_vec_push(&offered.segments, made);
  pthread_mutex_unlock(&offered.lock);
  if (!kept) {
    pccl_segment_release(made);
    return pccl_no_memory("a unique id");
  }
  id_content content = {.pid = getpid(), .fd = made->fd};
  memcpy(content.magic, id_magic, sizeof id_magic);
  memcpy(content.cookie, made->header->cookie, PCCL_COOKIE_BYTES);
  memset(id, 0, sizeof *id);
  memcpy(id->bytes, &content, sizeof content);
  *segment = made;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_get_unique_id(polyccl_unique_id *id) {
  if (id == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_get_unique_id: id is NULL");
  }
  pccl_segment *segment;
  return pccl_offer(id, &segment);
}

/* The offer has done its duty once all have joined. */
static void withdraw_offer(const unsigned char *cookie) {
  pccl_segment *found = NULL;
  pthread_mutex_lock(&offered.lock);
  for (size_t i = 0; i < offered.segments.len && found == NULL; i++) {
    if (memcmp(offered.segments.data[i]->header->cookie, cookie, PCCL_COOKIE_BYTES) == 0) {
      found = offered.segments.data[i];
      offered.segments.data[i] = offered.segments.data[--offered.segments.len];
    }
  }
  if (offered.segments.len == 0) {
    pccl_vec_free(&offered.segments);
  }
  pthread_mutex_unlock(&offered.lock);
  pccl_segment_release(found);
}

void pccl_withdraw(const polyccl_unique_id *id) {
  id_content content;
  memcpy(&content, id->bytes, sizeof content);
  withdraw_offer(content.cookie);
}

static polyccl_result check_ranks(int ranks, int rank) {
  if (ranks < 1 || ranks > POLYCCL_MAX_LOCAL_RANKS) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a communicator has 1 to %d ranks, not %d", POLYCCL_MAX_LOCAL_RANKS, ranks);
  }
  if (rank < 0 || rank >= ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d is out of range (0 to %d)", rank, ranks - 1);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result read_options(polyccl_comm *comm) {
  size_t seconds, checks;
  PCCL_TRY(pccl_option_number("POLYCCL_TIMEOUT", 1, 1000000, &seconds));
  comm->timeout_ns = (uint64_t)seconds * 1000000000u;
  PCCL_TRY(pccl_option_number("POLYCCL_CHECK", 0, 1, &checks));
  comm->checks = checks != 0;
  return pccl_option_number("POLYCCL_BUFFER", 1 << 16, (uint64_t)1 << 36, &comm->buffer_bytes);
}

/* Of one instance of the last level, as the kernel describes it; virtual machines tell sysconf() stories. */
static size_t last_cache_bytes(void) {
  char text[32] = "";
  uint64_t bytes = 0;
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
  if (file != NULL) {
    if (fgets(text, sizeof text, file) != NULL) {
      text[strcspn(text, "\n")] = '\0';
    }
    fclose(file);
  }
  return pccl_parse_size(text, &bytes) && bytes > 0 && bytes < SIZE_MAX ? (size_t)bytes : (size_t)32 << 20;
}

/* Takes over the reference to `segment`. */
static polyccl_result make_comm(pccl_segment *segment, int ranks, int rank, polyccl_comm **comm) {
  pthread_once(&watch_once, watch_forks);
  polyccl_comm *made = pccl_zeroed(1, sizeof *made);
  int *fds = pccl_array((size_t)ranks, sizeof *fds);
  pccl_view *view = pccl_zeroed((size_t)ranks, sizeof *view);
  polyccl_result result =
      made != NULL && fds != NULL && view != NULL ? read_options(made) : pccl_no_memory("a communicator");
  if (result != POLYCCL_SUCCESS) {
    free(made);
    free(fds);
    free(view);
    pccl_segment_release(segment);
    return result;
  }
  for (int i = 0; i < ranks; i++) {
    fds[i] = -1;
  }
  made->peer_fd = fds;
  made->cache_bytes = last_cache_bytes();
  made->view = view;
  made->segment = segment;
  made->cell = &segment->header->cell[rank];
  made->kernels = pccl_reduce_kernels();
  made->rank = rank;
  made->ranks = ranks;
  made->forks = atomic_load_explicit(&forks, memory_order_relaxed);
  made->pid = getpid();
  *comm = made;
  return POLYCCL_SUCCESS;
}

static void free_comm(polyccl_comm *comm) {
  pccl_choices_free(comm);
  pccl_plans_free(comm);
  pccl_builtin_free(comm);
  free(comm->stage[0]);
  free(comm->stage[1]);
  for (size_t i = 0; i < comm->ends.len; i++) {
    free(comm->ends.data[i]);
  }
  pccl_vec_free(&comm->ends);
  pccl_map_free(&comm->end_of);
  for (int i = 0; i < comm->ranks; i++) {
    if (comm->peer_fd[i] >= 0) {
      close(comm->peer_fd[i]);
    }
  }
  free(comm->peer_fd);
  free(comm->view);
  pccl_region_cache_free(&comm->regions);
  polyccl_mem_free(comm->scratch);
  pccl_segment_release(comm->segment);
  free(comm);
}

/* Takes the rank's cell. */
static polyccl_result claim(polyccl_comm *comm) {
  pccl_segment_header *header = comm->segment->header;
  int32_t ranks = 0;
  if (!atomic_compare_exchange_strong(&header->ranks, &ranks, comm->ranks) && ranks != comm->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d joins a communicator of %d ranks, others said %d", comm->rank,
                     comm->ranks, (int)ranks);
  }
  uint32_t absent = PCCL_RANK_ABSENT;
  if (!atomic_compare_exchange_strong(&comm->cell->state, &absent, PCCL_RANK_JOINING)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "rank %d of this unique id is taken: an id makes one communicator",
                     comm->rank);
  }
  comm->cell->pid = comm->pid;
  pccl_segment_add_cpus(header);
  atomic_store(&comm->cell->state, PCCL_RANK_JOINED);
  atomic_fetch_add(&header->joined, 1);
  pccl_futex_wake(&header->joined);
  return POLYCCL_SUCCESS;
}

static polyccl_result absent_error(polyccl_comm *comm) {
  pccl_segment_header *header = comm->segment->header;
  char list[120] = "";
  size_t used = 0;
  int absent = 0;
  for (int rank = 0; rank < comm->ranks; rank++) {
    if (atomic_load(&header->cell[rank].state) == PCCL_RANK_ABSENT && absent++ < 8) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", absent > 1 ? ", " : "", rank);
    }
  }
  pccl_segment_abort(header, POLYCCL_ERROR_TIMEOUT, "%d of %d ranks did not join within %llu s: rank %s%s", absent,
                     comm->ranks, (unsigned long long)(comm->timeout_ns / 1000000000u), list,
                     absent > 8 ? ", ..." : "");
  return pccl_segment_abort_error(header);
}

static polyccl_result wait_for_all(polyccl_comm *comm) {
  pccl_segment_header *header = comm->segment->header;
  uint64_t start = pccl_now();
  for (;;) {
    uint32_t joined = atomic_load_explicit(&header->joined, memory_order_acquire);
    if (pccl_segment_aborted(header)) {
      return pccl_segment_abort_error(header);
    }
    if (joined >= (uint32_t)comm->ranks) {
      return POLYCCL_SUCCESS;
    }
    if (pccl_now() - start > comm->timeout_ns) {
      return absent_error(comm);
    }
    pccl_futex_wait(&header->joined, joined, 100000);
    PCCL_TRY(pccl_look_at_peers(comm));
  }
}

/* After all have joined. */
static void count_cores(polyccl_comm *comm) {
  comm->cores = pccl_segment_cpus(comm->segment->header);
  comm->crowded = comm->ranks > comm->cores;
}

polyccl_result polyccl_comm_init_rank(polyccl_comm **comm, int ranks, polyccl_unique_id id, int rank) {
  if (comm == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_comm_init_rank: comm is NULL");
  }
  PCCL_TRY(check_ranks(ranks, rank));
  id_content content;
  memcpy(&content, id.bytes, sizeof content);
  if (memcmp(content.magic, id_magic, sizeof id_magic) != 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "these bytes are not a unique id");
  }
  pccl_segment *segment;
  PCCL_TRY(pccl_segment_attach(content.pid, content.fd, content.cookie, &segment));
  polyccl_comm *made;
  PCCL_TRY(make_comm(segment, ranks, rank, &made));
  polyccl_result result = claim(made);
  if (result == POLYCCL_SUCCESS) {
    result = wait_for_all(made);
  }
  if (result != POLYCCL_SUCCESS) {
    free_comm(made);
    return result;
  }
  withdraw_offer(content.cookie);
  count_cores(made);
  enter_living(made);
  PCCL_INFO("rank %d of %d joined: process %d, %d cores, kernels %s", rank, ranks, (int)made->pid, made->cores,
            made->kernels->name);
  *comm = made;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_comm_init_all(polyccl_comm **comms, int ranks) {
  if (comms == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_comm_init_all: comms is NULL");
  }
  PCCL_TRY(check_ranks(ranks, 0));
  pccl_segment *segment;
  PCCL_TRY(pccl_segment_create(&segment));
  polyccl_result result = POLYCCL_SUCCESS;
  int rank = 0;
  for (; rank < ranks && result == POLYCCL_SUCCESS; rank++) {
    result = make_comm(pccl_segment_share(segment), ranks, rank, &comms[rank]);
    if (result == POLYCCL_SUCCESS) {
      result = claim(comms[rank]);
    }
  }
  pccl_segment_release(segment);
  for (int i = 0; i < ranks && result == POLYCCL_SUCCESS; i++) {
    count_cores(comms[i]);
    enter_living(comms[i]);
  }
  if (result != POLYCCL_SUCCESS) {
    while (--rank >= 0) {
      if (comms[rank] != NULL) {
        free_comm(comms[rank]);
      }
      comms[rank] = NULL;
    }
  }
  return result;
}

void polyccl_comm_destroy(polyccl_comm *comm) {
  if (comm == NULL) {
    return;
  }
  if (!leave_living(comm)) {
    pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_comm_destroy: %p is no communicator, or was destroyed before",
              (void *)comm);
    return;
  }
  if (comm->forks == atomic_load_explicit(&forks, memory_order_relaxed)) {
    atomic_store(&comm->cell->state, PCCL_RANK_LEFT);
    for (int rank = 0; rank < comm->ranks; rank++) {
      pccl_ring_bell(&comm->segment->header->cell[rank]);
    }
  }
  free_comm(comm);
}

void polyccl_comm_abort(polyccl_comm *comm) {
  if (comm != NULL) {
    pccl_segment_abort(comm->segment->header, POLYCCL_ERROR_REMOTE, "rank %d aborted the communicator", comm->rank);
  }
}

polyccl_result polyccl_comm_get_async_error(const polyccl_comm *comm) {
  if (comm == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the communicator is NULL");
  }
  return pccl_segment_aborted(comm->segment->header) ? pccl_segment_abort_error(comm->segment->header)
                                                     : POLYCCL_SUCCESS;
}

int polyccl_comm_count(const polyccl_comm *comm) { return comm != NULL ? comm->ranks : 0; }
int polyccl_comm_user_rank(const polyccl_comm *comm) { return comm != NULL ? comm->rank : -1; }

polyccl_result pccl_comm_usable(const polyccl_comm *comm) {
  if (comm == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the communicator is NULL");
  }
  if (comm->forks != atomic_load_explicit(&forks, memory_order_relaxed)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a communicator does not survive fork(): this is the child's copy");
  }
  return polyccl_comm_get_async_error(comm);
}

polyccl_result pccl_comm_end(polyccl_comm *comm, int src, int dst, int channel, polyccl_protocol protocol,
                             int log2_bytes, bool sender, pccl_end **end) {
  bool is_new = false;
  uint64_t key = pccl_end_key(src, dst, channel, protocol, log2_bytes) << 1 | (uint64_t)sender;
  uint64_t *index = pccl_map_get(&comm->end_of, key);
  if (index != NULL) {
    *end = comm->ends.data[*index];
    return POLYCCL_SUCCESS;
  }
  pccl_end *made = pccl_zeroed(1, sizeof *made);
  if (made == NULL) {
    return pccl_no_memory("a connection");
  }
  polyccl_result result = pccl_end_open(comm->segment, src, dst, channel, protocol, log2_bytes, sender, made);
  if (result == POLYCCL_SUCCESS &&
      (!pccl_vec_push(&comm->ends, made) || pccl_map_put(&comm->end_of, key, comm->ends.len - 1, &is_new) == NULL)) {
    comm->ends.len -= comm->ends.len > 0 && comm->ends.data[comm->ends.len - 1] == made;
    result = pccl_no_memory("a connection");
  }
  if (result != POLYCCL_SUCCESS) {
    free(made);
    return result;
  }
  *end = made;
  return POLYCCL_SUCCESS;
}
