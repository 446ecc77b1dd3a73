#include <string.h>

#include <polyccl/compile.h>
#include <polyccl/program.h>

#include "base/error.h"
#include "base/file.h"
#include "calibrate.h"

static polyccl_result parse_plan_text(pccl_text *text, polyccl_plan **plan) {
  polyccl_result result = text->failed ? pccl_no_memory("a plan to calibrate with")
                                       : polyccl_plan_parse("calibrate", text->data, text->len, plan);
  pccl_text_free(text);
  return result;
}

polyccl_result pccl_calibrate_copies(int copies, polyccl_plan **plan) {
  pccl_text text = {0};
  pccl_text_add(&text,
                "polyccl-plan 1\nname \"copies\"\ncollective custom\nranks 2\nchunks 1\n"
                "post 0 0 = 0.0\npost 1 0 = 1.0\n");
  for (int rank = 0; rank < 2; rank++) {
    pccl_text_add(&text, "rank %d scratch 0\n  tb\n", rank);
    for (int i = 0; i < copies; i++) {
      pccl_text_add(&text, "    copy i0 o0 x1\n");
    }
  }
  return parse_plan_text(&text, plan);
}

polyccl_result pccl_calibrate_hops(polyccl_protocol protocol, polyccl_plan **plan) {
  pccl_text text = {0};
  pccl_text_add(&text,
                "polyccl-plan 1\nname \"hops\"\ncollective custom\nranks 2\nchunks 1\nprotocol %s\n"
                "post 0 0 = 0.0\n",
                polyccl_protocol_name(protocol));
  pccl_text_add(&text, "rank 0 scratch 1\n  tb\n");
  for (int hop = 0; hop < PCCL_CALIBRATE_HOPS; hop += 2) {
    pccl_text_add(&text, "    send %s x1 to 1.0\n    recv %s x1 from 1.0\n", hop == 0 ? "i0" : "s0",
                  hop + 2 < PCCL_CALIBRATE_HOPS ? "s0" : "o0");
  }
  pccl_text_add(&text, "rank 1 scratch 1\n  tb\n");
  for (int hop = 0; hop < PCCL_CALIBRATE_HOPS; hop += 2) {
    pccl_text_add(&text, "    recv s0 x1 from 0.0\n    send s0 x1 to 0.0\n");
  }
  return parse_plan_text(&text, plan);
}

polyccl_result pccl_calibrate_return(polyccl_plan **plan) {
  pccl_text text = {0};
  pccl_text_add(&text,
                "polyccl-plan 1\nname \"return\"\ncollective custom\nranks 2\nchunks 1\npost 0 0 = 0.0 1.0\n"
                "rank 0 scratch 0\n  tb\n    send i0 x1 to 1.0\n  tb\n    recv o0 x1 from 1.0\n"
                "rank 1 scratch 1\n  tb\n    rrcs i0 s0 x1 from 0.0 to 0.0\n");
  return parse_plan_text(&text, plan);
}

static polyccl_result write_transfer(polyccl_program *program, bool reduces, polyccl_plan **plan) {
  const polyccl_location nowhere = {NULL, 0};
  polyccl_ref from, to;
  PCCL_TRY(polyccl_program_chunk(program, 0, POLYCCL_INPUT, 0, 1, nowhere, &from));
  if (reduces) {
    PCCL_TRY(polyccl_program_chunk(program, 1, POLYCCL_INPUT, 0, 1, nowhere, &to));
    PCCL_TRY(polyccl_program_reduce(program, &to, &from, POLYCCL_NO_HINTS, nowhere, &to));
  } else {
    PCCL_TRY(polyccl_program_copy(program, &from, 1, POLYCCL_OUTPUT, 0, POLYCCL_NO_HINTS, nowhere, &to));
  }
  polyccl_compile_options options = {.size = sizeof(polyccl_compile_options),
                                     .placement = POLYCCL_OUT_OF_PLACE}; /* as most calls are */
  return polyccl_compile(program, reduces ? &options : NULL, plan);
}

polyccl_result pccl_calibrate_transfer(polyccl_protocol protocol, bool reduces, polyccl_plan **plan) {
  polyccl_program_config config = {.size = sizeof(polyccl_program_config),
                                   .name = reduces ? "reduce" : "send",
                                   .collective = reduces ? POLYCCL_REDUCE : POLYCCL_SENDRECV,
                                   .ranks = 2,
                                   .chunks = 1,
                                   .inplace = reduces,
                                   .root = reduces ? 1 : 0,
                                   .peer = reduces ? 0 : 1,
                                   .protocol = protocol};
  polyccl_program *program;
  PCCL_TRY(polyccl_program_create(&config, &program));
  polyccl_result result = write_transfer(program, reduces, plan);
  polyccl_program_destroy(program);
  return result;
}
