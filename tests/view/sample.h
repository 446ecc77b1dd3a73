/* A plan on two ranks with hostile names, and a trace of it in which every event has a time of its own. */
#ifndef TESTS_VIEW_SAMPLE_H
#define TESTS_VIEW_SAMPLE_H

static const char sample_text[] =
    "polyccl-plan 1\n"
    "name \"two </script> \\\"ranks\\\"\"\n"
    "collective allreduce\nranks 2\nchunks 2\ndepth 2\n"
    "file 0 \"</script><b>.lua\"\n"
    "rank 0 scratch 0\n"
    "  tb\n    send i0 x1 to 1.0 at 0:3\n    rrc i1 o1 x1 from 1.0 at 0:4\n"
    "  tb\n    send o1 x1 to 1.1 wait 0.1 at 0:5\n    recv o0 x1 from 1.1 at 0:5\n"
    "rank 1 scratch 0\n"
    "  tb\n    send i1 x1 to 0.0 at 0:3\n    rrc i0 o0 x1 from 0.0 at 0:4\n"
    "  tb\n    send o0 x1 to 0.1 wait 0.1 at 0:5\n    recv o1 x1 from 0.1 at 0:5\n";

static polyccl_plan *sample_plan(void) {
  polyccl_plan *plan = NULL;
  assert_int_equal(polyccl_plan_parse("sample", sample_text, sizeof sample_text - 1, &plan), POLYCCL_SUCCESS);
  return plan;
}

/* Two micro-batches; events go in backwards; each step first waits. */
static polyccl_trace *sample_trace(void) {
  polyccl_plan *plan = sample_plan();
  polyccl_trace *trace = NULL;
  assert_int_equal(polyccl_trace_create(plan, "simulated", &trace), POLYCCL_SUCCESS);
  polyccl_plan_destroy(plan); /* the trace needs it no longer */
  int link = -1;
  assert_int_equal(polyccl_trace_add_link(trace, "a </script> b", 25, &link), POLYCCL_SUCCESS);
  for (int i = 15; i >= 0; i--) {
    int rank = i & 1, tb = i >> 1 & 1, step = i >> 2 & 1, batch = i >> 3;
    double at = 100.0 * batch + 10.0 * (2 * tb + step) + 0.125 * rank;
    polyccl_trace_state state = step == 0 ? POLYCCL_TRACE_WAIT_BLOCK : POLYCCL_TRACE_WAIT_DATA;
    polyccl_trace_event busy = {rank, tb, step, batch, POLYCCL_TRACE_BUSY, tb == 1, at + 4, at + 9.5};
    polyccl_trace_event wait = {rank, tb, step, batch, state, false, at, at + 4};
    assert_int_equal(polyccl_trace_add(trace, &busy), POLYCCL_SUCCESS);
    assert_int_equal(polyccl_trace_add(trace, &wait), POLYCCL_SUCCESS);
    assert_int_equal(polyccl_trace_add_sample(trace, link, at, i), POLYCCL_SUCCESS);
  }
  assert_int_equal(polyccl_trace_finish(trace), POLYCCL_SUCCESS);
  return trace;
}

#endif
