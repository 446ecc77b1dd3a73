/* Communicators: unique ids, joining, leaving. */
#include "runtime/comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "executor/image_find.h"
#include "runtime/select.h"

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

static polyccl_result read_options(polyccl_comm *comm, uint64_t *timeout_ns, pccl_copy_mode *kernel_copy) {
  size_t seconds, checks;
  PCCL_TRY(pccl_option_number("POLYCCL_TIMEOUT", 1, 1000000, &seconds));
  *timeout_ns = (uint64_t)seconds * 1000000000u;
  PCCL_TRY(pccl_option_number("POLYCCL_CHECK", 0, 1, &checks));
  comm->checks = checks != 0;
  const char *copy = pccl_option("POLYCCL_KERNEL_COPY");
  *kernel_copy = strcmp(copy, "auto") == 0 ? PCCL_COPY_AUTO
                 : strcmp(copy, "1") == 0  ? PCCL_COPY_ALWAYS
                                           : PCCL_COPY_NEVER;
  if (*kernel_copy == PCCL_COPY_NEVER && strcmp(copy, "0") != 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "POLYCCL_KERNEL_COPY=%.200s is none of auto, 0 and 1", copy);
  }
  return pccl_option_number("POLYCCL_BUFFER", 1 << 16, (uint64_t)1 << 36, &comm->builtin.buffer_bytes);
}

/* Joins without waiting. Takes over the reference to `segment`. */
static polyccl_result make_comm(pccl_segment *segment, int ranks, int rank, polyccl_comm **comm) {
  pthread_once(&watch_once, watch_forks);
  polyccl_comm *made = pccl_zeroed(1, sizeof *made);
  uint64_t timeout_ns = 0;
  pccl_copy_mode kernel_copy = PCCL_COPY_NEVER;
  polyccl_result result =
      made != NULL ? read_options(made, &timeout_ns, &kernel_copy) : pccl_no_memory("a communicator");
  if (result != POLYCCL_SUCCESS) {
    pccl_segment_release(segment);
  } else {
    result = pccl_member_create(segment, ranks, rank, timeout_ns, &made->executor.member);
  }
  if (result != POLYCCL_SUCCESS) {
    free(made);
    return result;
  }
  made->executor.member.kernel_copy = kernel_copy;
  pccl_executor_init(&made->executor);
  made->builtin.member = &made->executor.member;
  made->forks = atomic_load_explicit(&forks, memory_order_relaxed);
  *comm = made;
  return POLYCCL_SUCCESS;
}

static void free_comm(polyccl_comm *comm, bool leaves) {
  pccl_choices_free(comm);
  pccl_executor_free(&comm->executor);
  for (size_t i = 0; i < comm->plans.len; i++) {
    pccl_loaded_release(comm->plans.data[i]);
  }
  pccl_vec_free(&comm->plans);
  pccl_builtin_free(&comm->builtin);
  pccl_stage_pool_free(&comm->stages);
  pccl_images_trim();
  pccl_member_destroy(&comm->executor.member, leaves);
  free(comm);
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
  polyccl_result result = pccl_member_wait(&made->executor.member);
  if (result != POLYCCL_SUCCESS) {
    free_comm(made, false);
    return result;
  }
  withdraw_offer(content.cookie);
  enter_living(made);
  PCCL_INFO("rank %d of %d joined: process %d, %d cores, kernels %s", rank, ranks, (int)made->executor.member.pid,
            made->executor.member.cores, made->executor.kernels->name);
  *comm = made;
  return POLYCCL_SUCCESS;
}

polyccl_result polyccl_comm_init_all(polyccl_comm **comms, int ranks) {
  if (comms == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "polyccl_comm_init_all: comms is NULL");
  }
  PCCL_TRY(check_ranks(ranks, 0));
  memset(comms, 0, (size_t)ranks * sizeof(polyccl_comm *));
  pccl_segment *segment;
  PCCL_TRY(pccl_segment_create(&segment));
  polyccl_result result = POLYCCL_SUCCESS;
  for (int rank = 0; rank < ranks && result == POLYCCL_SUCCESS; rank++) {
    result = make_comm(pccl_segment_share(segment), ranks, rank, &comms[rank]);
  }
  pccl_segment_release(segment);
  for (int i = 0; i < ranks && result == POLYCCL_SUCCESS; i++) {
    result = pccl_member_wait(&comms[i]->executor.member); /* all are there */
  }
  for (int i = 0; i < ranks; i++) {
    if (result == POLYCCL_SUCCESS) {
      enter_living(comms[i]);
    } else if (comms[i] != NULL) {
      free_comm(comms[i], false);
      comms[i] = NULL;
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
  free_comm(comm, comm->forks == atomic_load_explicit(&forks, memory_order_relaxed));
}

void polyccl_comm_abort(polyccl_comm *comm) {
  if (comm != NULL) {
    pccl_member *member = &comm->executor.member;
    pccl_board_abort(member->board, POLYCCL_ERROR_REMOTE, "rank %d aborted the communicator", member->rank);
  }
}

polyccl_result polyccl_comm_get_async_error(const polyccl_comm *comm) {
  if (comm == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the communicator is NULL");
  }
  pccl_board *board = comm->executor.member.board;
  return pccl_board_aborted(board) ? pccl_board_error(board) : POLYCCL_SUCCESS;
}

int polyccl_comm_count(const polyccl_comm *comm) { return comm != NULL ? comm->executor.member.ranks : 0; }
int polyccl_comm_user_rank(const polyccl_comm *comm) { return comm != NULL ? comm->executor.member.rank : -1; }

void pccl_record_calls(polyccl_comm *comm, struct pccl_call_trace *trace) { comm->executor.trace = trace; }

polyccl_result pccl_comm_usable(const polyccl_comm *comm) {
  if (comm == NULL) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the communicator is NULL");
  }
  if (comm->forks != atomic_load_explicit(&forks, memory_order_relaxed)) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "a communicator does not survive fork(): this is the child's copy");
  }
  return polyccl_comm_get_async_error(comm);
}
