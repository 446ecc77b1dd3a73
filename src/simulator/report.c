/* Writes a simulation as tables for people and as tab-separated lines for programs. */
#include <stdlib.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"
#include "simulator/machine.h"

enum { MAX_ROWS = 20, MAX_LINES = 12 };

static polyccl_result check_written(FILE *to) {
  return ferror(to) ? pccl_fail_errno("cannot write the simulation") : POLYCCL_SUCCESS;
}

static void write_totals(const polyccl_simulation *s, const polyccl_plan *plan, const polyccl_topology *topology,
                         FILE *to) {
  fprintf(to, "plan                 %s (%s, %d ranks, %zu thread blocks, %zu steps)\n",
          plan->name != NULL ? plan->name : "", polyccl_collective_name(plan->collective), plan->ranks, plan->tbs,
          plan->steps);
  fprintf(to, "topology             %s\n", topology->name != NULL ? topology->name : "");
  fprintf(to, "size                 %llu B\n", (unsigned long long)s->bytes);
  fprintf(to, "protocol             %s, %s, %d micro-batch%s, FIFO depth %d\n", polyccl_protocol_name(s->protocol),
          s->order == POLYCCL_TASK_MAJOR ? "task-major" : "batch-major", s->micro_batches,
          s->micro_batches == 1 ? "" : "es", s->fifo_depth);
  fprintf(to, "time                 %.3f us (launch %.3f us)\n", s->time, s->launch);
  fprintf(to, "algorithm bandwidth  %.3f GB/s\n", s->algorithm);
  fprintf(to, "bus bandwidth        %.3f GB/s (x %.4f)\n", s->bus, s->bus_factor);
  fprintf(to, "step executions      %llu (%llu events, link shares %s)\n", (unsigned long long)s->executions,
          (unsigned long long)s->events, s->exact ? "exact" : "within a tolerance");
}

static double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

typedef struct rank_row {
  double time[POLYCCL_SIM_STATE_COUNT], idlest;
} rank_row;

static rank_row sum_rank(const polyccl_simulation *s, const polyccl_plan *plan, int rank) {
  rank_row row = {0};
  for (int32_t t = plan->rank[rank].tb; t < plan->rank[rank].tb + plan->rank[rank].tbs; t++) {
    for (int state = 0; state < POLYCCL_SIM_STATE_COUNT; state++) {
      row.time[state] += s->tb[t].time[state];
    }
    double not_busy = s->time - s->tb[t].time[POLYCCL_SIM_BUSY];
    row.idlest = not_busy > row.idlest ? not_busy : row.idlest;
  }
  return row;
}

static void write_row(const double *time, double whole, FILE *to) {
  for (int state = 0; state < POLYCCL_SIM_STATE_COUNT; state++) {
    fprintf(to, "  %6.1f %%", percent(time[state], whole));
  }
}

static void write_blocks(const polyccl_simulation *s, const polyccl_plan *plan, FILE *to) {
  fprintf(to, "\nthread blocks, share of the time\n");
  fprintf(to, "  rank  blocks      busy  on blocks   on data  on credit     idle   idlest block\n");
  rank_row all = {0};
  for (int r = 0; r < plan->ranks; r++) {
    rank_row row = sum_rank(s, plan, r);
    for (int state = 0; state < POLYCCL_SIM_STATE_COUNT; state++) {
      all.time[state] += row.time[state];
    }
    all.idlest = row.idlest > all.idlest ? row.idlest : all.idlest;
    if (r < MAX_ROWS) {
      fprintf(to, "  %4d  %6d", r, plan->rank[r].tbs);
      write_row(row.time, s->time * plan->rank[r].tbs, to);
      fprintf(to, "  %6.1f %%\n", percent(row.idlest, s->time));
    }
  }
  if (plan->ranks > MAX_ROWS) {
    fprintf(to, "  ... %d more ranks\n", plan->ranks - MAX_ROWS);
  }
  fprintf(to, "   all  %6zu", plan->tbs);
  write_row(all.time, s->time * (double)plan->tbs, to);
  fprintf(to, "  %6.1f %%\n", percent(all.idlest, s->time));
}

typedef struct used_link {
  double utilisation;
  int32_t link;
} used_link;

static int by_utilisation(const void *a, const void *b) {
  const used_link *x = a, *y = b;
  if (x->utilisation != y->utilisation) {
    return x->utilisation > y->utilisation ? -1 : 1;
  }
  return x->link < y->link ? -1 : x->link > y->link;
}

static polyccl_result write_links(const polyccl_simulation *s, const polyccl_topology *topology, FILE *to) {
  used_link *used = pccl_array(s->links, sizeof *used);
  if (used == NULL) {
    return pccl_no_memory("the links' table");
  }
  size_t count = 0;
  for (size_t l = 0; l < s->links; l++) {
    if (s->link[l].bytes > 0) {
      used[count++] = (used_link){s->link[l].utilisation, (int32_t)l};
    }
  }
  qsort(used, count, sizeof *used, by_utilisation);
  fprintf(to, "\nlinks, the busiest of the %zu used\n", count);
  fprintf(to, "  utilisation          bytes     GB/s  of GB/s  link\n");
  for (size_t i = 0; i < count && i < MAX_ROWS; i++) {
    const polyccl_link *link = &topology->link[used[i].link];
    double bytes = s->link[used[i].link].bytes;
    fprintf(to, "      %5.1f %%  %14.0f  %7.2f  %7.2f  %s -> %s (%s)\n", 100 * used[i].utilisation, bytes,
            s->time > 0 ? bytes / s->time / 1e3 : 0, link->bandwidth, topology->node[link->from].name,
            topology->node[link->to].name, topology->link_type[link->type]);
  }
  free(used);
  return POLYCCL_SUCCESS;
}

static void write_critical(const polyccl_simulation *s, FILE *to) {
  if (s->criticals == 0) {
    return;
  }
  size_t by_cause[POLYCCL_SIM_STATE_COUNT] = {0};
  for (size_t i = 0; i < s->criticals; i++) {
    by_cause[s->critical[i].cause]++;
  }
  fprintf(to, "\ncritical path: %zu steps; what each waited for last: own step %zu, blocks %zu, data %zu, credit %zu\n",
          s->criticals, by_cause[POLYCCL_SIM_BUSY], by_cause[POLYCCL_SIM_WAIT_BLOCKS], by_cause[POLYCCL_SIM_WAIT_DATA],
          by_cause[POLYCCL_SIM_WAIT_CREDIT]);
  fprintf(to, "          us    share    steps  line\n");
  for (size_t i = 0; i < s->lines && i < MAX_LINES; i++) {
    const polyccl_sim_line *line = &s->line[i];
    fprintf(to, "  %10.3f  %5.1f %%  %7llu  ", line->time, percent(line->time, s->time),
            (unsigned long long)line->steps);
    if (line->at.file != NULL) {
      fprintf(to, "%s:%d\n", line->at.file, line->at.line);
    } else {
      fprintf(to, "(no line known)\n");
    }
  }
  if (s->lines > MAX_LINES) {
    fprintf(to, "  ... %zu more lines\n", s->lines - MAX_LINES);
  }
}

polyccl_result polyccl_simulation_write(const polyccl_simulation *simulation, const polyccl_plan *plan,
                                        const polyccl_topology *topology, FILE *to) {
  write_totals(simulation, plan, topology, to);
  write_blocks(simulation, plan, to);
  PCCL_TRY(write_links(simulation, topology, to));
  write_critical(simulation, to);
  return check_written(to);
}

polyccl_result polyccl_simulation_write_timeline(const polyccl_simulation *simulation, const polyccl_plan *plan,
                                                 FILE *to) {
  fprintf(to, "rank\ttb\tstep\tmicro-batch\top\tstate\tstart us\tend us\tline\n");
  for (size_t i = 0; i < simulation->records; i++) {
    const polyccl_sim_record *r = &simulation->record[i];
    const polyccl_thread_block *tb = &plan->tb[plan->rank[r->rank].tb + r->tb];
    const polyccl_step *step = &plan->step[tb->step + r->step];
    polyccl_location at = pccl_step_location(plan, step);
    fprintf(to, "%d\t%d\t%d\t%d\t%s\t%s\t%.6f\t%.6f\t%s:%d\n", r->rank, r->tb, r->step, r->micro_batch,
            polyccl_step_op_name((polyccl_step_op)step->op), polyccl_sim_state_name((polyccl_sim_state)r->state),
            r->start, r->end, at.file != NULL ? at.file : "", at.line);
  }
  for (size_t i = 0; i < simulation->uses; i++) {
    const polyccl_sim_use *u = &simulation->use[i];
    fprintf(to, "%slink\t%d\t%.6f\t%.6f\n", i == 0 ? "\n\tlink\tfrom us\tGB/s\n" : "", u->link, u->time, u->rate);
  }
  return check_written(to);
}
