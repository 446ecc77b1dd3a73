/* What the files of synthesisers have in common: they say which chunk travels from which rank to which, and in what
 * order. A reader (teccl.c, sccl.c, forestcoll.c) collects these hops; synth.c makes a program of them with the builder
 * of program.h, so that the check, every policy and every executor apply to it.
 *
 * A new reader needs a function below, a row of `readers` in synth.c, and a kind of file (base/kind.h). */
#ifndef PCCL_LANGUAGE_SYNTH_H
#define PCCL_LANGUAGE_SYNTH_H

#include "base/kind.h"
#include "language/loader.h"

/* `size` chunks from `chunk` on of rank `root`'s input. In AllToAll a root has ranks blocks of chunks, one per
 * destination, and so has the root of a scatter. Where the file's own hops reduce (allreduce, reduce_scatter, reduce)
 * `chunk` is the place in every rank's memory, `root` means nothing. */
typedef struct pccl_hop {
  int32_t root, chunk, size;
  int32_t src, dst; /* ranks */
  int32_t order;    /* hops are done in this order; equal ones in the order in which they were added */
  int32_t line;
  int32_t serial; /* set where they are sorted */
} pccl_hop;

typedef struct pccl_synth {
  const char *file;
  polyccl_collective collective; /* what the file describes: allgather, alltoall or, with one root, broadcast */
  int32_t ranks, chunks;         /* chunks of a block */
  int32_t root;                  /* broadcast, reduce, gather, scatter */
  PCCL_VEC(pccl_hop) hop;
} pccl_synth;

/* The line of the file where the hop stands. */
static inline polyccl_location pccl_hop_place(const pccl_synth *schedule, const pccl_hop *hop) {
  return (polyccl_location){schedule->file, hop->line};
}

/* True for collectives that add: allreduce, reduce_scatter, reduce. */
bool pccl_synth_reduces(polyccl_collective collective);

void pccl_synth_free(pccl_synth *schedule);

/* True for what one of the readers below takes; other programs are Lua. */
bool pccl_is_synth(pccl_kind kind);

/* Reads the text of the file `name` and makes loader->program of it. pccl_is_synth(kind) must be true. */
polyccl_result pccl_synth_load(pccl_loader *loader, const char *name, pccl_kind kind, const char *text, size_t length);

/* Sets *value to the value that the user gave, else to the default, and records the parameter as asked for. */
polyccl_result pccl_synth_param(pccl_loader *loader, const char *name, const char *default_value, const char *help,
                                const char **value);
polyccl_result pccl_synth_param_int(pccl_loader *loader, const char *name, int default_value, int min, int max,
                                    const char *help, int *value);

/* Makes the operations of a schedule that reduces. What arrives is added to what is there, or replaces it if it
 * contains all of it. All hops of one order start from the contents before the first of them. */
polyccl_result pccl_sccl_reduce(const pccl_synth *schedule, polyccl_program *program);

/* The readers, one for each kind of file. Each fills *schedule, whose file is set; `loader` gives parameters. */
polyccl_result pccl_sccl_read(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule);
polyccl_result pccl_teccl_read(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule);
polyccl_result pccl_forestcoll_read(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule);

#endif
