/* Sends and receives that do not match, and peers that are waited for in vain: all ranks end with an error that says
 * who and what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>

#include "base/error.h"
#include "exchange_util.h"

static float zeros[64];

static void expect_text(const char *wanted) {
  if (strstr(polyccl_last_error(), wanted) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", polyccl_last_error(), wanted);
  }
}

/* Each rank's own last error, kept for the test. */
typedef struct outcome {
  int which;
  polyccl_result result[4], acted[4];
  char text[4][500];
} outcome;

static const size_t two[] = {4, 4}, three[] = {3, 3}, apart[] = {0, 8}, mixed[] = {4, 3}, fewer[] = {3, 4};

/* What rank 0 and rank 1 do in each case, after calls that match. */
static polyccl_result act(polyccl_comm *comm, int which, int rank) {
  const polyccl_dtype f32 = POLYCCL_FLOAT32;
  static _Thread_local float out[64], in[64];
  switch (which * 2 + rank) {
    case 0: return polyccl_send(in, 5, f32, 1, comm, NULL);
    case 1: return polyccl_recv(out, 6, f32, 0, comm, NULL);
    case 2: return polyccl_send(in, 5, f32, 1, comm, NULL);
    case 3: return polyccl_recv(out, 5, POLYCCL_INT32, 0, comm, NULL);
    case 4: return polyccl_alltoallv(in, two, apart, out, two, apart, f32, comm, NULL);
    case 5: return polyccl_alltoallv(in, fewer, apart, out, fewer, apart, f32, comm, NULL);
    case 6: return polyccl_allgatherv(in, 4, out, two, apart, f32, comm, NULL);
    case 7: return polyccl_allgatherv(in, 3, out, mixed, apart, f32, comm, NULL);
    case 8: return polyccl_alltoallv(in, two, apart, out, two, apart, f32, comm, NULL);
    case 9: return polyccl_allgatherv(in, 4, out, two, apart, f32, comm, NULL);
    case 10: return polyccl_reduce_scatterv(in, out, two, f32, POLYCCL_SUM, comm, NULL);
    case 11: return polyccl_reduce_scatterv(in, out, two, f32, POLYCCL_MAX, comm, NULL);
    case 12: return polyccl_gatherv(in, 4, out, two, apart, f32, 0, comm, NULL);
    case 13: return polyccl_gatherv(in, 4, out, two, apart, f32, 1, comm, NULL);
    case 14: return polyccl_scatterv(in, three, apart, out, 3, f32, 0, comm, NULL);
    case 15: return polyccl_scatterv(in, two, apart, out, 4, f32, 0, comm, NULL);
    case 16: return polyccl_alltoallv(in, two, apart, out, two, apart, f32, comm, NULL);
    case 17: return polyccl_alltoallv(in, two, apart, out, two, apart, POLYCCL_INT32, comm, NULL);
    case 18: /* both only send, so the first call ends; the second must not take its message */
      PCCL_TRY(polyccl_scatterv(in, two, apart, out, 4, f32, 0, comm, NULL));
      return polyccl_scatterv(in, two, apart, out, 4, f32, 0, comm, NULL);
    case 19:
      PCCL_TRY(polyccl_scatterv(in, two, apart, out, 4, f32, 1, comm, NULL));
      return polyccl_scatterv(in, two, apart, out, 4, f32, 0, comm, NULL);
    case 20: return polyccl_send(in, 0, f32, 1, comm, NULL);
    case 21: return polyccl_recv(out, 1, f32, 0, comm, NULL);
    case 22: /* its first message is still there when rank 1 makes the same call, one later */
      PCCL_TRY(polyccl_gatherv(in, 4, NULL, NULL, NULL, f32, 1, comm, NULL));
      return polyccl_gatherv(in, 4, NULL, NULL, NULL, f32, 1, comm, NULL);
    case 23:
      PCCL_TRY(polyccl_scatterv(in, two, apart, out, 4, f32, 1, comm, NULL));
      return polyccl_gatherv(in, 4, out, two, apart, f32, 1, comm, NULL);
    default: return POLYCCL_ERROR_INTERNAL;
  }
}

static const char *const says[] = {"rank 0 sends 5 f32, rank 1 receives 6 f32",
                                   "rank 0 sends 5 f32, rank 1 receives 5 i32",
                                   "alltoallv: rank ", /* whoever sees it first */
                                   "allgatherv",
                                   "alltoallv of f32",
                                   "reduce_scatterv of 8 f32, ",
                                   "gatherv of f32, root ",
                                   "rank 0 sends 3 f32, rank 1 receives 4 f32",
                                   "alltoallv: rank ",
                                   "scatterv of f32, root ",
                                   "rank 0 sends 0 f32, rank 1 receives 1 f32",
                                   "call 2 differs: "};

static polyccl_result disagree(polyccl_comm *comm, void *argument) {
  outcome *o = argument;
  int rank = polyccl_comm_user_rank(comm);
  float out[8];
  polyccl_result result = polyccl_alltoallv(zeros, two, apart, zeros + 16, two, apart, POLYCCL_FLOAT32, comm, NULL);
  if (result == POLYCCL_SUCCESS) {
    result = o->acted[rank] = act(comm, o->which, rank);
  }
  /* A sender may have ended before its receiver looked: the error meets its next call. */
  for (int i = 0; result == POLYCCL_SUCCESS && i < 3; i++) {
    result = polyccl_recv(out, 1, POLYCCL_FLOAT64, 1 - rank, comm, NULL);
  }
  o->result[rank] = result;
  snprintf(o->text[rank], sizeof o->text[rank], "%s", polyccl_last_error());
  return POLYCCL_SUCCESS;
}

static void disagreements_end_both(void **state) {
  (void)state;
  for (int which = 0; which < (int)(sizeof says / sizeof says[0]); which++) {
    outcome o = {.which = which};
    assert_int_equal(pccl_launch_threads(2, disagree, &o), POLYCCL_SUCCESS);
    for (int rank = 0; rank < 2; rank++) {
      if (o.result[rank] != POLYCCL_ERROR_INVALID || strstr(o.text[rank], says[which]) == NULL) {
        fail_msg("case %d, rank %d: %s: \"%s\" does not say \"%s\"", which, rank, polyccl_result_name(o.result[rank]),
                 o.text[rank], says[which]);
      }
      assert_string_equal(o.text[0], o.text[1]);
    }
    assert_int_equal(o.acted[1], POLYCCL_ERROR_INVALID); /* at once, not only when it waits in vain later */
  }
}

/* ---- peers that are gone ---- */

typedef enum fate { LEAVES, KILLED, STOPS } fate;
typedef struct story {
  fate fate;
  size_t count;
  bool sends; /* the survivor sends, else it receives */
} story;

static polyccl_result waits_in_vain(polyccl_comm *comm, void *argument) {
  const story *s = argument;
  int rank = polyccl_comm_user_rank(comm);
  PCCL_TRY(polyccl_alltoallv(zeros, (size_t[]){1, 1, 1}, (size_t[]){0, 1, 2}, zeros + 16, (size_t[]){1, 1, 1},
                             (size_t[]){0, 1, 2}, POLYCCL_FLOAT32, comm, NULL));
  if (rank == 2) {
    switch (s->fate) {
      case LEAVES: return POLYCCL_SUCCESS;
      case KILLED: raise(SIGKILL); break;
      case STOPS: raise(SIGSTOP); break;
    }
  }
  float *data = calloc(s->count + 1, sizeof *data);
  polyccl_result result = s->sends && rank == 0 ? polyccl_send(data, s->count, POLYCCL_FLOAT32, 2, comm, NULL)
                          : rank == 0           ? polyccl_recv(data, s->count, POLYCCL_FLOAT32, 2, comm, NULL)
                                                : polyccl_recv(data, 1, POLYCCL_FLOAT32, 0, comm, NULL);
  free(data);
  return result;
}

static void lost_peers_are_named(void **state) {
  (void)state;
  static const struct {
    story story;
    const char *says;
  } cases[] = {{{LEAVES, 5, false}, "rank 2 left the communicator; rank 0 waits for rank 2 to send 5 f32 (send/recv"},
               {{LEAVES, 1000000, true},
                "rank 2 left the communicator; rank 0 waits for rank 2 to receive 1000000 f32 (send/recv"},
               {{LEAVES, 0, false}, "rank 2 left the communicator; rank 0 waits for rank 2 to send 0 f32"},
               {{KILLED, 5, false}, "rank 2: was killed by signal 9"},
               {{KILLED, 1000000, true}, "rank 2: was killed by signal 9"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    story s = cases[i].story;
    assert_int_equal(pccl_launch_processes(3, waits_in_vain, &s), POLYCCL_ERROR_REMOTE);
    expect_text(cases[i].says);
  }
}

/* The time-out says who waits for whom, and follows the waits to the rank that holds up all. */
static void time_outs_name_the_peer(void **state) {
  (void)state;
  setenv("POLYCCL_TIMEOUT", "2", 1);
  story s = {STOPS, 7, false};
  assert_int_not_equal(pccl_launch_processes(3, waits_in_vain, &s), POLYCCL_SUCCESS);
  expect_text("waited 2 s for rank ");
  expect_text("rank 2 waits for nobody");
  unsetenv("POLYCCL_TIMEOUT");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(disagreements_end_both), cmocka_unit_test(lost_peers_are_named),
                                     cmocka_unit_test(time_outs_name_the_peer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
