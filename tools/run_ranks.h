/* What the parts of a rank's work in polyccl run share: run_ranks.c is the course of it, run_buffers.c makes and checks
 * the buffers, run_memory.c asks first whether they can be had, run_measure.c times calls, run_trace.c records them,
 * run_table.c prints. */
#ifndef PCCL_TOOLS_RUN_RANKS_H
#define PCCL_TOOLS_RUN_RANKS_H

#include <stdatomic.h>

#include "run.h"

enum { PCCL_RUN_MAX_SAMPLES = 51, PCCL_RUN_GUARD = 256 };

/* Memory that all ranks share, apart from the library: its own barrier, samples, sums. */
typedef struct pccl_run_board {
  _Atomic uint32_t arrived, phase;
  _Atomic uint64_t wrong, overwritten, total_wrong;
  _Atomic uint64_t start; /* --apart: when the next call begins, ns */
  int batch, samples;
  double sample[];
} pccl_run_board;

typedef struct pccl_run_job {
  const pccl_run_args *args;
  pccl_run_board *board;
  double bandwidth; /* rank 0's sums for the average */
  int lines;
  char *traces; /* two pccl_call_trace per rank; NULL: no trace */
} pccl_run_job;

typedef struct pccl_run_buffers {
  char *input, *output; /* of the call */
  char *memory[2];      /* as allocated, guards around */
  size_t bytes[2];      /* inside the guards */
} pccl_run_buffers;

typedef struct pccl_run_measured {
  bool done;
  double seconds;
  uint64_t wrong;
} pccl_run_measured;

/* ---- run_buffers.c ---- */

/* Bytes of the two buffers of a rank, guards included; in place the second is only guards. False: more than 64 bits. */
bool pccl_run_buffer_bytes(const pccl_run_args *args, const polyccl_plan *plan, size_t count, size_t bytes[2]);
polyccl_result pccl_run_make_buffers(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count,
                                     pccl_run_buffers *b);
void pccl_run_free_buffers(const pccl_run_args *args, pccl_run_buffers *b);
/* Fills the input; everything else is set to a byte that no result has in all its places. */
void pccl_run_reset(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count, pccl_run_buffers *b);
/* Bytes around the buffers that are not as they were. */
uint64_t pccl_run_overwritten(const pccl_run_args *args, const pccl_run_buffers *b);

/* ---- run_memory.c ---- */

/* LIMIT, naming what the call of `count` elements per block needs, where this machine does not have it. */
polyccl_result pccl_run_check_memory(const pccl_run_args *args, size_t count);

/* ---- run_measure.c ---- */

polyccl_result pccl_run_barrier(polyccl_comm *comm, pccl_run_board *b);
/* `id`: the plan; with a folder the placement, the library chooses the plan. */
polyccl_result pccl_run_calls(polyccl_comm *comm, int id, const pccl_run_args *args, const pccl_run_buffers *b,
                              size_t count, int times);
polyccl_result pccl_run_measure(polyccl_comm *comm, pccl_run_job *j, int id, const pccl_run_buffers *b, size_t count);
/* The slowest rank of each sample, the median of the samples. */
double pccl_run_median(const pccl_run_board *b, int ranks);

/* ---- run_trace.c ---- */

/* Memory for the ranks' traces, which all processes share. */
polyccl_result pccl_run_map_traces(pccl_run_job *j, int ranks);
void pccl_run_unmap_traces(pccl_run_job *j, int ranks);
/* A few more calls, all ranks together; the quickest stays, since whatever else the machine does only adds. */
polyccl_result pccl_run_record(polyccl_comm *comm, pccl_run_job *j, int id, const pccl_run_buffers *b, size_t count);
polyccl_result pccl_run_write_trace(const pccl_run_job *j);

/* ---- run_table.c ---- */

const polyccl_plan *pccl_run_any_plan(const pccl_run_args *args);
/* Blocks of the larger buffer: what a size in bytes counts. */
size_t pccl_run_blocks(const polyccl_plan *plan);
void pccl_run_print_head(const pccl_run_args *args);
void pccl_run_print_line(pccl_run_job *j, size_t bytes, size_t count, const pccl_run_measured m[PCCL_RUN_PLACEMENTS]);
/* A table that nobody can read ends the run. */
polyccl_result pccl_run_flush_table(void);

#endif
