/* base: names, sizes, the hash table, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/file.h"
#include "base/map.h"
#include "base/options.h"
#include "base/sized.h"
#include "base/vec.h"

static void names_round_trip(void **state) {
  (void)state;
  for (int i = 0; i < POLYCCL_DTYPE_COUNT; i++) {
    polyccl_dtype dtype;
    assert_int_equal(polyccl_dtype_parse(polyccl_dtype_name((polyccl_dtype)i), &dtype), POLYCCL_SUCCESS);
    assert_int_equal(dtype, i);
    assert_true(polyccl_dtype_size(dtype) > 0);
  }
  for (int i = 0; i < POLYCCL_COLLECTIVE_COUNT; i++) {
    polyccl_collective collective;
    assert_int_equal(polyccl_collective_parse(polyccl_collective_name((polyccl_collective)i), &collective), 0);
    assert_int_equal(collective, i);
  }
  polyccl_redop op = POLYCCL_MAX;
  assert_int_equal(polyccl_redop_parse("sun", &op), POLYCCL_ERROR_INVALID);
  assert_int_equal(op, POLYCCL_MAX);
  assert_string_equal(polyccl_last_error(), "unknown reduction \"sun\" (known: sum, prod, min, max, avg)");
  polyccl_protocol protocol;
  assert_int_equal(polyccl_protocol_parse("ll128", &protocol), POLYCCL_SUCCESS);
  assert_int_equal(protocol, POLYCCL_LL128);
  assert_null(polyccl_dtype_name((polyccl_dtype)99));
}

/* Three releases of one struct: a program and a library of different releases agree on what both know. */
typedef struct options_1 {
  size_t size;
  int32_t first;
} options_1;
typedef struct options_2 {
  size_t size;
  int32_t first, second;
  int64_t third;
} options_2;

static void options_of_other_releases(void **state) {
  (void)state;
  options_2 own = {.size = sizeof own, .first = 1, .second = 2, .third = 3};
  options_1 older = {.size = sizeof older, .first = 7};
  assert_int_equal(pccl_sized_read("options", NULL, &own, sizeof own, sizeof older), POLYCCL_SUCCESS);
  assert_int_equal(own.first, 1);
  assert_int_equal(pccl_sized_read("options", &older, &own, sizeof own, sizeof older), POLYCCL_SUCCESS);
  assert_int_equal(own.size, sizeof own);
  assert_int_equal(own.first, 7);
  assert_int_equal(own.third, 3);

  options_1 now = {.size = sizeof now, .first = 1};
  options_2 newer = {.size = sizeof newer, .first = 9};
  assert_int_equal(pccl_sized_read("options", &newer, &now, sizeof now, sizeof now), POLYCCL_SUCCESS);
  assert_int_equal(now.first, 9);
  newer.third = 1;
  assert_int_equal(pccl_sized_read("options", &newer, &now, sizeof now, sizeof now), POLYCCL_ERROR_UNSUPPORTED);
  assert_string_equal(polyccl_last_error(), "options: the program sets a member that this release does not know");
  for (size_t size = 0; size < sizeof now; size++) {
    now = (options_1){.size = sizeof now, .first = 5};
    options_1 bad = {.size = size, .first = 6};
    assert_int_equal(pccl_sized_read("options", &bad, &now, sizeof now, sizeof now), POLYCCL_ERROR_INVALID);
    assert_int_equal(now.first, 5);
  }
  newer.size = (size_t)-1;
  assert_int_equal(pccl_sized_read("options", &newer, &now, sizeof now, sizeof now), POLYCCL_ERROR_INVALID);
}

static void sizes_parse(void **state) {
  (void)state;
  uint64_t value = 0;
  assert_true(pccl_parse_size("64k", &value) && value == 65536);
  assert_true(pccl_parse_size("4GiB", &value) && value == (uint64_t)4 << 30);
  assert_true(pccl_parse_size("0", &value) && value == 0);
  static const char *const bad[] = {"", "-1", "k", "1x", "99999999999999999999", "18446744073709551615k", "1k2", " 1"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_false(pccl_parse_size(bad[i], &value));
  }
}

static void map_holds_what_is_put(void **state) {
  (void)state;
  pccl_map map = {0};
  assert_null(pccl_map_get(&map, 7));
  for (uint64_t i = 0; i < 10000; i++) {
    bool is_new = false;
    uint64_t *slot = pccl_map_put(&map, i * i, i, &is_new);
    assert_non_null(slot);
    assert_true(is_new);
  }
  for (uint64_t i = 0; i < 10000; i++) {
    assert_int_equal(*pccl_map_get(&map, i * i), i);
  }
  assert_null(pccl_map_get(&map, 3));
  pccl_map_free(&map);
}

static void errors_keep_their_place(void **state) {
  (void)state;
  assert_int_equal(pccl_fail_at(POLYCCL_ERROR_LIMIT, (polyccl_location){"ring.lua", 7}, "too many %s", "chunks"),
                   POLYCCL_ERROR_LIMIT);
  assert_string_equal(polyccl_last_error(), "ring.lua:7: too many chunks");
  pccl_prefix(POLYCCL_ERROR_LIMIT, "in %s: ", "demo");
  assert_string_equal(polyccl_last_error(), "in demo: ring.lua:7: too many chunks");
  pccl_fail(POLYCCL_ERROR_INVALID, "again: %s", polyccl_last_error());
  assert_string_equal(polyccl_last_error(), "again: in demo: ring.lua:7: too many chunks");
}

static void vectors_refuse_absurd_sizes(void **state) {
  (void)state;
  PCCL_VEC(uint64_t) v = {0};
  assert_true(pccl_vec_push(&v, 5));
  assert_false(pccl_vec_reserve(&v, SIZE_MAX / 2));
  assert_int_equal(v.data[0], 5);
  pccl_vec_free(&v);
  assert_null(pccl_array(SIZE_MAX / 2, 4));
}

static void unreadable_files_say_why(void **state) {
  (void)state;
  char *text = NULL;
  size_t length = 0;
  assert_int_equal(pccl_read_file("/nonexistent/x", 100, &text, &length), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(), "/nonexistent/x: cannot read: No such file or directory");
  assert_int_equal(pccl_read_file("/", 100, &text, &length), POLYCCL_ERROR_INVALID);
  assert_int_equal(pccl_read_file("/proc/self/maps", 10, &text, &length), POLYCCL_ERROR_INVALID);
  assert_null(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_round_trip),
      cmocka_unit_test(options_of_other_releases),
      cmocka_unit_test(sizes_parse),
      cmocka_unit_test(map_holds_what_is_put),
      cmocka_unit_test(errors_keep_their_place),
      cmocka_unit_test(vectors_refuse_absurd_sizes),
      cmocka_unit_test(unreadable_files_say_why),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
