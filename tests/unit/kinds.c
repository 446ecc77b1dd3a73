/* What text is taken for: one case for each way in which it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/kind.h"

static const struct {
  const char *text;
  pccl_kind kind;
} cases[] = {
    {"", PCCL_KIND_EMPTY},
    {" \r\n\t", PCCL_KIND_EMPTY},
    {"\xef\xbb\xbf", PCCL_KIND_EMPTY},
    {"\xef\xbb\xbf# a comment\n polyccl-plan 1", PCCL_KIND_PLAN_TEXT},
    {"polyccl-plan", PCCL_KIND_PLAN_TEXT},
    {"polyccl plan", PCCL_KIND_TEXT},
    {"hello world", PCCL_KIND_TEXT},
    {"-- a comment", PCCL_KIND_LUA},
    {"#!/usr/bin/lua\nlocal x", PCCL_KIND_LUA},
    {"locals", PCCL_KIND_TEXT},
    {"allreduce { ranks = 2 }", PCCL_KIND_LUA},
    {"import = 3", PCCL_KIND_LUA},
    {"class 'x'", PCCL_KIND_LUA},
    {"import os", PCCL_KIND_PYTHON},
    {"# comment\nfrom msccl.language import *", PCCL_KIND_PYTHON},
    {"#!/usr/bin/env python3\nx", PCCL_KIND_PYTHON},
    {"<algo name='x'>", PCCL_KIND_PLAN_XML},
    {"<?xml version='1.0'?>\n<!-- <Algo> -->\n<algo/>", PCCL_KIND_PLAN_XML},
    {"<!DOCTYPE x [<!ENTITY a '>'>]>\n<Algo>", PCCL_KIND_FORESTCOLL},
    {"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology version=\"2.0\">", PCCL_KIND_HWLOC},
    {"<tree>", PCCL_KIND_FORESTCOLL},
    {"<trees>", PCCL_KIND_XML},
    {"<system version=\"1\">", PCCL_KIND_NCCL_TOPOLOGY},
    {"<", PCCL_KIND_XML},
    {"<!--", PCCL_KIND_XML},
    {"{", PCCL_KIND_JSON},
    {"{}", PCCL_KIND_JSON},
    {"[", PCCL_KIND_JSON},
    {"{\"a\": {\"traceEvents\": []}}", PCCL_KIND_JSON},
    {"{\"a\": [\"}\", \"\\\"\", {}], \"traceEvents\": [", PCCL_KIND_TRACE},
    {"[ {\"name\": \"x\", \"ph\": \"X\"", PCCL_KIND_TRACE},
    {"{\"7-Flows\": [", PCCL_KIND_TECCL},
    {"{\"8-Chunk paths\": {}", PCCL_KIND_TECCL},
    {"{\"Flowers\": 1}", PCCL_KIND_JSON},
    {"{\"n\": 99999999999999999999999999, \"msccl_type\": \"algorithm\"}", PCCL_KIND_SCCL},
    {"{\"n\": nonsense, \"sccl_type\" : \"algorithm\"", PCCL_KIND_SCCL},
    {"{\"msccl_type\": \"topology\"}", PCCL_KIND_SCCL_OBJECT},
    {"{\"input_map\": {}, \"output_map\": {}}", PCCL_KIND_SCCL},
    {"{\"input_map\": {}}", PCCL_KIND_JSON},
    {"{\"polyccl_topology\": 1", PCCL_KIND_TOPOLOGY},
    {"{\"gpus\": [], \"collective\": \"allreduce\"}", PCCL_KIND_MSCCLPP},
    {"{\"gpus\": []}", PCCL_KIND_JSON},
    {"{\"alpha\": 1, \"gpus_per_node\": 8}", PCCL_KIND_TACCL_TOPOLOGY},
    {"{\"intranode_sketch\": {}}", PCCL_KIND_TACCL_SKETCH},
    {"\x20\x0a\x05"
     "0.0.4",
     PCCL_KIND_CHAKRA},
    {"\x01\x02\x03 and more", PCCL_KIND_BINARY},
    {"\x1bLuaT", PCCL_KIND_TEXT},
    {"\177ELF", PCCL_KIND_OBJECT},
    {"\xff\xfep", PCCL_KIND_UTF16},
};

/* Each text in a block of its own size: nothing behind it is looked at. */
static void texts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t length = strlen(cases[i].text);
    char *copy = malloc(length + 1);
    assert_non_null(copy);
    memcpy(copy, cases[i].text, length);
    char *end = realloc(copy, length > 0 ? length : 1);
    assert_non_null(end);
    pccl_kind kind = pccl_kind_of(end, length);
    if (kind != cases[i].kind) {
      fail_msg("\"%s\" is taken for %d, not %d", cases[i].text, (int)kind, (int)cases[i].kind);
    }
    free(end);
  }
}

/* Every cut of a text that is recognised is something, too. */
static void cuts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (size_t length = 0; length <= strlen(cases[i].text); length++) {
      char *cut = malloc(length > 0 ? length : 1);
      assert_non_null(cut);
      memcpy(cut, cases[i].text, length);
      assert_in_range(pccl_kind_of(cut, length), 0, PCCL_KIND_COUNT - 1);
      free(cut);
    }
  }
}

static void messages(void **state) {
  (void)state;
  assert_int_equal(pccl_kind_check("x", PCCL_KIND_PLAN_XML, PCCL_USE_PLAN | PCCL_USE_PROGRAM), POLYCCL_SUCCESS);
  for (int kind = 0; kind < PCCL_KIND_COUNT; kind++) {
    for (unsigned use = PCCL_USE_PLAN; use <= PCCL_USE_TRACE; use *= 2) {
      bool serves = (pccl_kind_uses((pccl_kind)kind) & use) != 0;
      assert_int_equal(pccl_kind_check("x.y", (pccl_kind)kind, use) == POLYCCL_SUCCESS, serves);
      assert_true(serves || strncmp(polyccl_last_error(), "x.y: this is ", 13) == 0);
    }
  }
  assert_int_equal(pccl_kind_check("x", PCCL_KIND_TRACE, PCCL_USE_TOPOLOGY), POLYCCL_ERROR_INVALID);
  assert_string_equal(polyccl_last_error(),
                      "x: this is a trace (Chrome trace events), not a topology; polyccl view --trace-in reads it");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(cuts), cmocka_unit_test(messages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
