/* What a rank of polyccl run does: run_ranks.c has the sequence, run_memory.c checks first that there is enough memory,
 * run_buffers.c makes and checks the buffers, run_measure.c times calls, run_trace.c records them, run_table.c prints
 * the table. */
#ifndef PCCL_TOOLS_RUN_RANKS_H
#define PCCL_TOOLS_RUN_RANKS_H

#include <stdatomic.h>

#include "run.h"

enum { PCCL_RUN_MAX_SAMPLES = 51, PCCL_RUN_GUARD = 256 };

/* Memory that all ranks share beside that of the library: a barrier, samples, sums. */
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
  char *traces; /* two pccl_call_trace for each rank; NULL: no trace */
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

/* Stores the bytes of the two buffers of a rank with their guards; in place the second has only guards. False if they
 * do not fit 64 bits. */
bool pccl_run_buffer_bytes(const pccl_run_args *args, const polyccl_plan *plan, size_t count, size_t bytes[2]);
polyccl_result pccl_run_make_buffers(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count,
                                     pccl_run_buffers *b);
void pccl_run_free_buffers(const pccl_run_args *args, pccl_run_buffers *b);
/* Fills the input and sets every other byte to one value that no result consists of. */
void pccl_run_reset(const pccl_run_args *args, const polyccl_plan *plan, int rank, size_t count, pccl_run_buffers *b);
/* Counts the bytes around the buffers that have changed. */
uint64_t pccl_run_overwritten(const pccl_run_args *args, const pccl_run_buffers *b);

/* ---- run_memory.c ---- */

/* LIMIT with the memory that a call of `count` elements per block needs, if this machine does not have it. */
polyccl_result pccl_run_check_memory(const pccl_run_args *args, size_t count);

/* ---- run_measure.c ---- */

polyccl_result pccl_run_barrier(polyccl_comm *comm, pccl_run_board *b);
/* Makes `times` calls of plan `id`; with a folder `id` is the placement and the library chooses the plan. */
polyccl_result pccl_run_calls(polyccl_comm *comm, int id, const pccl_run_args *args, const pccl_run_buffers *b,
                              size_t count, int times);
polyccl_result pccl_run_measure(polyccl_comm *comm, pccl_run_job *j, int id, const pccl_run_buffers *b, size_t count);
/* Returns the median over the samples of the time of the slowest rank, in seconds. */
double pccl_run_median(const pccl_run_board *b, int ranks);

/* ---- run_trace.c ---- */

/* Maps memory for the traces of all ranks, which all processes share. */
polyccl_result pccl_run_map_traces(pccl_run_job *j, int ranks);
void pccl_run_unmap_traces(pccl_run_job *j, int ranks);
/* Records a few more calls of all ranks and keeps the fastest, since other work on the machine only adds time. */
polyccl_result pccl_run_record(polyccl_comm *comm, pccl_run_job *j, int id, const pccl_run_buffers *b, size_t count);
polyccl_result pccl_run_write_trace(const pccl_run_job *j);

/* ---- run_table.c ---- */

const polyccl_plan *pccl_run_any_plan(const pccl_run_args *args);
/* Returns the number of blocks of the larger buffer, which a size in bytes counts. */
size_t pccl_run_blocks(const polyccl_plan *plan);
void pccl_run_print_head(const pccl_run_args *args);
void pccl_run_print_line(pccl_run_job *j, size_t bytes, size_t count, const pccl_run_measured m[PCCL_RUN_PLACEMENTS]);
/* Fails if the table cannot be written, which ends the run. */
polyccl_result pccl_run_flush_table(void);

#endif
