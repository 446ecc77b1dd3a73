/* The state of reading a trace: the place in the text, and the tables of blocks, steps and places so far. */
#ifndef PCCL_TRACE_READER_H
#define PCCL_TRACE_READER_H

#include <jansson.h>

#include "base/map.h"
#include "trace/trace.h"

typedef struct pccl_reader {
  const char *name, *text;
  size_t length, at;
  size_t event; /* number of the event being read */
  polyccl_trace *trace;
  PCCL_VEC(polyccl_trace_block) blocks;
  PCCL_VEC(polyccl_trace_step) steps;
  PCCL_VEC(polyccl_wait) waits;
  PCCL_VEC(char *) places;
  pccl_map block_of, step_of, place_of;
  bool own; /* polyccl_trace_write() wrote it, so times need no shift */
} pccl_reader;

/* INVALID with the file, the line and the number of the event. */
polyccl_result pccl_reader_bad_event(const pccl_reader *r, const char *what);
bool pccl_reader_natural(const json_t *value, int32_t *number);

/* Finds the number of the block (rank, thread block); adds a new one. */
polyccl_result pccl_reader_block(pccl_reader *r, int32_t rank, int32_t tb, int32_t *block);
/* Finds the number of the step that the `args` of an event describe; adds a new one. */
polyccl_result pccl_reader_step(pccl_reader *r, int32_t block, const json_t *args, const char *name, int32_t *index);

/* Sorts blocks and steps. In traces of other programs the times are shifted to begin at 0. */
polyccl_result pccl_reader_settle(pccl_reader *r);
/* Moves the tables into the trace, even if reading failed. */
void pccl_reader_hand_over(pccl_reader *r);

#endif
