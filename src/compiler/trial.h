/* What the parts of the search share: a trial is one choice of how to schedule, the bench holds the IR that it is made
 * on, and the record keeps all trials with what the simulator said. */
#ifndef PCCL_COMPILER_TRIAL_H
#define PCCL_COMPILER_TRIAL_H

#include "compiler/bound.h"
#include "compiler/flow.h"
#include "compiler/task.h"

typedef enum pccl_trial_kind { PCCL_TRIAL_HPDS, PCCL_TRIAL_CONNECTION, PCCL_TRIAL_LIST } pccl_trial_kind;

/* A value of `hops`: chains of any length, which end at scarce links. */
enum { PCCL_HOPS_APART = -1 };

typedef struct pccl_trial {
  pccl_trial_kind kind;
  int32_t instances;      /* of the program */
  int32_t hops;           /* list: longest chain of fused messages; 1: nothing is fused; 0: no bound; HOPS_APART */
  int32_t oversubscribed; /* list: flows on a link beyond those that its bandwidth feeds at full speed */
  pccl_list_rule list;
  double time; /* us, simulated */
  int32_t tbs; /* of the rank that has most */
} pccl_trial;

typedef struct pccl_search {
  const polyccl_program *program;
  polyccl_compile_options options; /* of the trials: no dump, no times, fusion as the trial says */
  uint64_t bytes;
  int32_t instances;             /* that the program or the caller asks for */
  int32_t max_tbs, max_resident; /* thread blocks to offer to a list; resident on the device at once */
  /* The bench. */
  pccl_ir ir;
  pccl_tasks tasks;
  pccl_flows flows;
  pccl_trial built; /* whose IR the bench holds; instances 0: it is empty */
  /* The record. */
  PCCL_VEC(pccl_trial) trials; /* the first is HPDS as published */
  pccl_bound bound;
  double budget; /* simulated step executions left; the work of the compiler counts in the same unit */
} pccl_search;

/* ---- trial.c ---- */

const char *pccl_trial_kind_name(pccl_trial_kind kind);

/* Schedules the trial on the bench and leaves its IR ready for emit. `*fits` false: this program cannot be cut or
 * chained so. */
polyccl_result pccl_trial_schedule(pccl_search *s, const pccl_trial *t, bool *fits);

/* Simulates the scheduled IR: t->time, and `busy` (or NULL), us of work of each thread block, rank by rank. */
polyccl_result pccl_trial_simulate(pccl_search *s, pccl_trial *t, double *busy);

/* Schedules and simulates the trial, and adds it to the record where it fits. */
polyccl_result pccl_trial_run(pccl_search *s, pccl_trial t);

/* Empties the bench. */
void pccl_bench_clear(pccl_search *s);

/* ---- record.c ---- */

/* us of the quickest trial. */
double pccl_record_min_time(const pccl_search *s);

/* us that a plan may take to count as quickest: never more than HPDS as published or a plan of policy "connection". */
double pccl_record_time_limit(const pccl_search *s);

/* Of the trials within the limit, the one with the fewest thread blocks. */
const pccl_trial *pccl_record_best(const pccl_search *s);

/* The quickest list schedule; NULL: none. */
const pccl_trial *pccl_record_best_list(const pccl_search *s);

/* True for a list schedule that was tried, or one that only offers more thread blocks than were used. */
bool pccl_record_has(const pccl_search *s, const pccl_trial *t);

/* True where the budget is used up. */
bool pccl_search_is_spent(const pccl_search *s);

/* True where the caller and the search allow so many thread blocks on a rank. */
bool pccl_search_allows(const pccl_search *s, int32_t tbs);

/* us that count as equal to `us` where fewer thread blocks can be had for them. */
double pccl_with_slack(double us);

/* ---- shrink.c ---- */

/* Numbers of thread blocks to offer to a list. */
enum { PCCL_TB_STEPS = 17 };
extern const int32_t pccl_tb_steps[PCCL_TB_STEPS];

/* Runs the quickest list schedule with fewer thread blocks, as long as it stays quick. */
polyccl_result pccl_shrink_offer(pccl_search *s);

/* Merges thread blocks of the trial that is scheduled on the bench, as long as it stays quick. */
polyccl_result pccl_shrink_merge(pccl_search *s, pccl_trial *t);

#endif
