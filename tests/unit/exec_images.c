/* Images of plans: made once by all ranks of a host, whatever becomes of the maker; kept in files, which may hold
 * anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <polyccl/polyccl.h>

#include "base/error.h"
#include "exec_util.h"
#include "executor/image_file.h"
#include "executor/image_find.h"
#include "runtime/comm.h"
#include "runtime/launcher.h"

enum { RANKS = 6 };

typedef enum fate { MAKES, FAILS_FIRST, DIES_FIRST, REFUSES } fate;

/* In memory that processes share. */
typedef struct story {
  fate fate;
  atomic_int made, failed, arrived;
  char key[64];
} story;

static story *tell(fate which, const char *key) {
  story *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(s != MAP_FAILED);
  s->fate = which;
  snprintf(s->key, sizeof s->key, "%s", key);
  return s;
}

/* Waits until all ranks ask, so that they really meet here. */
static polyccl_result make(void *context, const char *key, pccl_image **image) {
  story *s = context;
  int before = atomic_fetch_add(&s->made, 1);
  for (int i = 0; i < 2000 && atomic_load(&s->arrived) < RANKS; i++) {
    usleep(1000);
  }
  usleep(20000);
  if (before == 0 && s->fate == DIES_FIRST) {
    raise(SIGKILL);
  }
  if (before == 0 && s->fate == FAILS_FIRST) {
    return pccl_fail(POLYCCL_ERROR_MEMORY, "no memory for this test");
  }
  if (s->fate == REFUSES) {
    return pccl_image_refuse(key, POLYCCL_ERROR_UNSUPPORTED, "not for this test", image);
  }
  polyccl_plan *plan = make_ring(RANKS, false, POLYCCL_SIMPLE);
  polyccl_result result = pccl_image_make(key, plan, 1 << 20, image);
  polyccl_plan_destroy(plan);
  return result;
}

/* A ring's part sends to the next rank and receives from the one before. */
static bool is_part_of(const pccl_loaded *part, int rank) {
  bool right = part->steps > 0 && part->links == 2;
  for (uint32_t i = 0; i < part->links; i++) {
    right = right && part->link[i].dst == (part->link[i].src + 1) % RANKS &&
            (part->link[i].src == rank || part->link[i].dst == rank);
  }
  for (uint32_t i = 0; i < part->steps; i++) {
    right = right && (part->step[i].send < 0 || part->link[part->step[i].send].src == rank) &&
            (part->step[i].recv < 0 || part->link[part->step[i].recv].dst == rank);
  }
  return right;
}

static polyccl_result ask(polyccl_comm *comm, void *argument) {
  story *s = argument;
  pccl_member *member = &comm->executor.member;
  pccl_image *image;
  pccl_loaded *part = NULL;
  atomic_fetch_add(&s->arrived, 1);
  polyccl_result result = pccl_image_find(member, s->key, make, s, &image);
  if (result == POLYCCL_ERROR_MEMORY) {
    atomic_fetch_add(&s->failed, 1);
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(result);
  result = pccl_image_part(image, member->rank, &part);
  pccl_image_release(image);
  if (result == POLYCCL_SUCCESS && !is_part_of(part, member->rank)) {
    result = pccl_fail(POLYCCL_ERROR_INTERNAL, "rank %d has another's part", member->rank);
  }
  pccl_loaded_release(part);
  return result;
}

typedef polyccl_result (*launch)(int, pccl_rank_fn, void *);
static const launch launches[] = {pccl_launch_threads, pccl_launch_processes};

static void one_rank_makes_it_for_all(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    story *s = tell(MAKES, i == 0 ? "made-by-threads" : "made-by-processes");
    assert_int_equal(launches[i](RANKS, ask, s), POLYCCL_SUCCESS);
    assert_int_equal(s->made, 1);
  }
}

static void another_takes_over_when_the_maker_fails(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    story *s = tell(FAILS_FIRST, i == 0 ? "failed-threads" : "failed-processes");
    assert_int_equal(launches[i](RANKS, ask, s), POLYCCL_SUCCESS);
    assert_int_equal(s->made, 2);
    assert_int_equal(s->failed, 1);
  }
}

static void the_others_hear_when_the_maker_dies(void **state) {
  (void)state;
  story *s = tell(DIES_FIRST, "died");
  assert_int_not_equal(pccl_launch_processes(RANKS, ask, s), POLYCCL_SUCCESS);
  assert_non_null(strstr(polyccl_last_error(), "Killed"));
  assert_int_equal(s->made, 1);
}

static void what_no_rank_can_have_is_tried_once(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    story *s = tell(REFUSES, i == 0 ? "refused-threads" : "refused-processes");
    assert_int_equal(launches[i](RANKS, ask, s), POLYCCL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(polyccl_last_error(), "not for this test"));
    assert_int_equal(s->made, 1);
  }
}

/* ---- files ---- */

static char folder[] = "/tmp/polyccl-images-XXXXXX";

static void file_of(const char *key, char path[512]) {
  snprintf(path, 512, "%s/%d.%d.%d-%s.image", folder, POLYCCL_VERSION_MAJOR, POLYCCL_VERSION_MINOR,
           POLYCCL_VERSION_PATCH, key);
}

static void put_file(const char *path, const void *data, size_t bytes) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  assert_int_equal(fclose(file), 0);
}

static int count_files(void) {
  DIR *files = opendir(folder);
  int count = 0;
  for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
    count += entry->d_name[0] != '.';
  }
  closedir(files);
  return count;
}

static pccl_image *image_of_ring(int ranks, const char *key) {
  polyccl_plan *plan = make_ring(ranks, false, POLYCCL_SIMPLE);
  pccl_image *image;
  assert_int_equal(pccl_image_make(key, plan, 1 << 20, &image), POLYCCL_SUCCESS);
  polyccl_plan_destroy(plan);
  return image;
}

static void a_file_brings_back_every_byte_or_nothing(void **state) {
  (void)state;
  static const char key[] = "every-byte";
  setenv("POLYCCL_CACHE", folder, 1);
  pccl_image *image = image_of_ring(2, key), *found;
  size_t bytes = (size_t)image->head->bytes;
  pccl_image_write(image);
  assert_int_equal(pccl_image_read(key, &found), POLYCCL_SUCCESS);
  assert_non_null(found);
  assert_memory_equal(found->head, image->head, bytes);
  pccl_image_release(found);
  assert_int_equal(pccl_image_read("another", &found), POLYCCL_SUCCESS);
  assert_null(found);
  char path[512], other[512];
  file_of(key, path);
  char *copy = malloc(bytes + 8);
  memset(copy, 0, bytes + 8);
  memcpy(copy, image->head, bytes);
  for (size_t i = 0; i < bytes; i++) {
    copy[i] = (char)(copy[i] ^ (1 << i % 8));
    put_file(path, copy, bytes);
    copy[i] = (char)(copy[i] ^ (1 << i % 8));
    assert_int_equal(pccl_image_read(key, &found), POLYCCL_SUCCESS);
    assert_null(found);
  }
  for (size_t length = 0; length < bytes + 8; length++) {
    put_file(path, copy, length);
    assert_int_equal(pccl_image_read(key, &found), POLYCCL_SUCCESS);
    assert_true((found != NULL) == (length == bytes));
    pccl_image_release(found);
  }
  file_of("another", other); /* under the name of another key */
  put_file(other, copy, bytes);
  assert_int_equal(pccl_image_read("another", &found), POLYCCL_SUCCESS);
  assert_null(found);
  chmod(path, 0666); /* anybody may have written it */
  put_file(path, copy, bytes);
  assert_int_equal(pccl_image_read(key, &found), POLYCCL_SUCCESS);
  assert_null(found);
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0); /* opening it must not wait */
  assert_int_equal(pccl_image_read(key, &found), POLYCCL_SUCCESS);
  assert_null(found);
  unlink(path);
  unlink(other);
  free(copy);
  pccl_image_release(image);
  unsetenv("POLYCCL_CACHE");
}

/* A checksum that is right does not make the rest right. */
static void indices_out_of_range_are_refused(void **state) {
  (void)state;
  static const char key[] = "indices";
  pccl_image *image = image_of_ring(3, key);
  assert_true(pccl_image_is_right(image));
  pccl_image_head *head = (pccl_image_head *)(uintptr_t)image->head;
  pccl_image_arrays all = pccl_image_arrays_of(head);
  int32_t *const numbers[] = {&all.step[0].recv,
                              &all.step[1].send,
                              &all.step[0].src.chunk,
                              &all.step[0].src.buffer,
                              &all.step[1].count,
                              &all.step[1].wait,
                              &all.step[1].waits,
                              &all.link[0].src,
                              &all.link[1].dst,
                              &all.link[0].channel,
                              &head->log2_ring,
                              &head->protocol,
                              &head->order,
                              &head->spec.ranks,
                              (int32_t *)&all.rank[1].steps,
                              (int32_t *)&all.tb[1].steps,
                              (int32_t *)&all.rank[0].links};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    int32_t before = *numbers[i];
    *numbers[i] = 1 << 28;
    if (pccl_image_is_right(image)) {
      fail_msg("number %zu", i);
    }
    *numbers[i] = before;
  }
  assert_true(pccl_image_is_right(image));
  pccl_image_release(image);
}

enum { COUNT = 100 };

static polyccl_result reduce(polyccl_comm *comm, void *argument) {
  (void)argument;
  int32_t in[COUNT], out[COUNT];
  int ranks = polyccl_comm_count(comm), rank = polyccl_comm_user_rank(comm);
  for (int i = 0; i < COUNT; i++) {
    in[i] = rank * 1000 + i;
  }
  PCCL_TRY(polyccl_allreduce(in, out, COUNT, POLYCCL_INT32, POLYCCL_SUM, comm, NULL));
  for (int i = 0; i < COUNT; i++) {
    if (out[i] != ranks * (ranks - 1) / 2 * 1000 + ranks * i) {
      return pccl_fail(POLYCCL_ERROR_INTERNAL, "rank %d element %d is %d", rank, i, (int)out[i]);
    }
  }
  return POLYCCL_SUCCESS;
}

/* Two communicators of as many processes write and read one folder at once. */
static polyccl_result reduce_twice(polyccl_comm *comm, void *argument) {
  PCCL_TRY(reduce(comm, argument));
  return reduce(comm, argument);
}

static void calls_use_what_is_kept_and_write_what_is_not(void **state) {
  (void)state;
  setenv("POLYCCL_CACHE", folder, 1);
  pid_t other = fork();
  if (other == 0) {
    _exit(pccl_launch_processes(4, reduce_twice, NULL) == POLYCCL_SUCCESS ? 0 : 1);
  }
  assert_int_equal(pccl_launch_processes(4, reduce_twice, NULL), POLYCCL_SUCCESS);
  int status = 1;
  assert_int_equal(waitpid(other, &status, 0), other);
  assert_int_equal(status, 0);
  assert_int_equal(count_files(), 1);
  DIR *files = opendir(folder);
  char path[1024] = "";
  for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
    if (entry->d_name[0] != '.') {
      snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    }
  }
  closedir(files);
  assert_non_null(strstr(path, "allreduce_"));
  put_file(path, "garbage", 7); /* is replaced */
  assert_int_equal(pccl_launch_processes(4, reduce, NULL), POLYCCL_SUCCESS);
  struct stat now;
  assert_int_equal(stat(path, &now), 0);
  assert_true(now.st_size > 1000);
  assert_int_equal(unlink(path), 0);
  setenv("POLYCCL_CACHE", "/proc/no-such-folder", 1);
  assert_int_equal(pccl_launch_processes(4, reduce, NULL), POLYCCL_SUCCESS);
  unsetenv("POLYCCL_CACHE");
}

/* The image of one plan never serves another: each change of the plan is a plan of its own. */
static polyccl_result add_variants(polyccl_comm *comm, void *argument) {
  (void)argument;
  polyccl_plan *plan = make_ring(polyccl_comm_count(comm), false, POLYCCL_SIMPLE);
  polyccl_result result = POLYCCL_SUCCESS;
  for (int i = 0; i < 5 && result == POLYCCL_SUCCESS; i++) {
    plan->min_bytes = i == 1 ? 100 : 0;
    plan->max_bytes = i == 2 ? 1000 : 0;
    plan->redops = i == 3 ? 1u << POLYCCL_MAX : 0;
    plan->protocol = i == 4 ? POLYCCL_LL128 : POLYCCL_SIMPLE;
    result = polyccl_comm_add_plan(comm, plan, NULL);
    const pccl_loaded *loaded = result == POLYCCL_SUCCESS ? comm->plans.data[i] : NULL;
    if (loaded != NULL && (loaded->min_bytes != plan->min_bytes || loaded->max_bytes != plan->max_bytes ||
                           loaded->redops != plan->redops || loaded->protocol != plan->protocol)) {
      result = pccl_fail(POLYCCL_ERROR_INTERNAL, "variant %d is another's", i);
    }
  }
  polyccl_plan_destroy(plan);
  return result;
}

static void plans_that_differ_have_images_of_their_own(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    if (launches[i](3, add_variants, NULL) != POLYCCL_SUCCESS) {
      fail_msg("%s", polyccl_last_error());
    }
  }
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder); /* fails if a temporary file stayed behind */
}

int main(void) {
  unsetenv("POLYCCL_CACHE");
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank_makes_it_for_all),
                                     cmocka_unit_test(another_takes_over_when_the_maker_fails),
                                     cmocka_unit_test(the_others_hear_when_the_maker_dies),
                                     cmocka_unit_test(what_no_rank_can_have_is_tried_once),
                                     cmocka_unit_test(a_file_brings_back_every_byte_or_nothing),
                                     cmocka_unit_test(indices_out_of_range_are_refused),
                                     cmocka_unit_test(calls_use_what_is_kept_and_write_what_is_not),
                                     cmocka_unit_test(plans_that_differ_have_images_of_their_own)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
