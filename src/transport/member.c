#include "transport/member.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "transport/shm/segment.h"
#include "transport/wait.h"

enum { RANK_BITS = 10, CHANNEL_BITS = 27, PROTOCOL_BITS = 2, SIZE_BITS = 6, DEPTH_BITS = 5 };

uint64_t pccl_connection_number(const pccl_connection_key *key) {
  uint64_t number = (uint64_t)key->src << RANK_BITS | (uint64_t)key->dst;
  number = number << CHANNEL_BITS | ((uint32_t)key->channel & ((1u << CHANNEL_BITS) - 1));
  number = number << PROTOCOL_BITS | ((uint64_t)key->protocol + 1);
  number = number << SIZE_BITS | (uint64_t)key->log2_bytes;
  return number << DEPTH_BITS | (uint64_t)key->log2_depth;
}

static uint64_t make_cookie(const pccl_segment *segment, int rank) {
  uint64_t word;
  memcpy(&word, segment->header->cookie, sizeof word);
  return pccl_mix64(word ^ (uint64_t)rank);
}

polyccl_result pccl_member_create(pccl_segment *segment, int ranks, int rank, uint64_t timeout_ns,
                                  pccl_member *member) {
  pccl_peer *peers = pccl_array((size_t)ranks, sizeof *peers);
  if (peers == NULL) {
    pccl_segment_release(segment);
    return pccl_no_memory("a communicator");
  }
  for (int i = 0; i < ranks; i++) {
    peers[i] = (pccl_peer){.transport = &pccl_transport_shm, .process_fd = -1};
  }
  *member = (pccl_member){.board = &segment->header->board,
                          .segment = segment,
                          .rank = rank,
                          .ranks = ranks,
                          .lines = true,
                          .pid = getpid(),
                          .cookie = make_cookie(segment, rank),
                          .timeout_ns = timeout_ns,
                          .peer = peers};
  polyccl_result result = pccl_board_join(member->board, ranks, rank, member->pid, &member->cookie);
  if (result != POLYCCL_SUCCESS) {
    pccl_member_destroy(member, false);
  }
  return result;
}

/* Once all have joined. */
static void meet_peers(pccl_member *member) {
  for (int i = 0; i < member->ranks; i++) {
    pccl_peer *peer = &member->peer[i];
    peer->pid = member->board->cell[i].pid;
    peer->same_process = peer->pid == member->pid;
    member->lines = member->lines && peer->transport->lines;
  }
  member->cores = pccl_board_cpus(member->board);
  member->oversubscribed = member->ranks > member->cores;
}

static polyccl_result name_absent(pccl_member *member) {
  char list[120] = "";
  size_t used = 0;
  int absent = 0;
  for (int rank = 0; rank < member->ranks; rank++) {
    if (pccl_board_state(member->board, rank) == PCCL_RANK_ABSENT && absent++ < 8) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", absent > 1 ? ", " : "", rank);
    }
  }
  pccl_board_abort(member->board, POLYCCL_ERROR_TIMEOUT, "%d of %d ranks did not join within %llu s: rank %s%s", absent,
                   member->ranks, (unsigned long long)(member->timeout_ns / 1000000000u), list,
                   absent > 8 ? ", ..." : "");
  return pccl_board_error(member->board);
}

polyccl_result pccl_member_test(pccl_member *member, uint64_t since) {
  uint32_t joined = atomic_load_explicit(&member->board->joined, memory_order_acquire);
  if (pccl_board_aborted(member->board)) {
    return pccl_board_error(member->board);
  }
  if (joined >= (uint32_t)member->ranks) {
    meet_peers(member);
    return POLYCCL_SUCCESS;
  }
  if (pccl_now() - since > member->timeout_ns) {
    return name_absent(member);
  }
  PCCL_TRY(pccl_look_at_peers(member));
  return POLYCCL_IN_PROGRESS;
}

polyccl_result pccl_member_wait(pccl_member *member) {
  uint64_t since = pccl_now();
  for (;;) {
    uint32_t joined = atomic_load_explicit(&member->board->joined, memory_order_acquire);
    polyccl_result result = pccl_member_test(member, since);
    if (result != POLYCCL_IN_PROGRESS) {
      return result;
    }
    pccl_futex_wait(&member->board->joined, joined, 100000);
  }
}

void pccl_member_destroy(pccl_member *member, bool leaves) {
  if (leaves) {
    pccl_board_leave(member->board, member->rank);
  }
  for (size_t i = 0; i < member->ends.len; i++) {
    member->ends.data[i]->transport->close(member->ends.data[i]);
  }
  pccl_vec_free(&member->ends);
  pccl_map_free(&member->end_of);
  for (int i = 0; i < member->ranks; i++) {
    if (member->peer[i].process_fd >= 0) {
      close(member->peer[i].process_fd);
    }
  }
  if (member->peer[0].transport->leave != NULL) {
    member->peer[0].transport->leave(member);
  }
  free(member->peer);
  pccl_region_cache_free(&member->regions);
  pccl_segment_release(member->segment);
}

polyccl_result pccl_member_end(pccl_member *member, const pccl_connection_key *key, bool sender, pccl_end **end) {
  bool is_new = false;
  uint64_t number = pccl_connection_number(key) << 1 | (uint64_t)sender;
  uint64_t *index = pccl_map_get(&member->end_of, number);
  if (index != NULL) {
    *end = member->ends.data[*index];
    return POLYCCL_SUCCESS;
  }
  if (!pccl_vec_reserve(&member->ends, 1)) {
    return pccl_no_memory("a connection");
  }
  pccl_end *made;
  int peer = sender ? key->dst : key->src;
  PCCL_TRY(member->peer[peer].transport->connect(member, key, sender, &made));
  if (pccl_map_put(&member->end_of, number, member->ends.len, &is_new) == NULL) {
    made->transport->close(made);
    return pccl_no_memory("a connection");
  }
  member->ends.data[member->ends.len++] = made;
  *end = made;
  return POLYCCL_SUCCESS;
}
