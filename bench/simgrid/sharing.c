/* Does the simulator share links as SimGrid's fluid model does? Each case is a topology and flows that start together;
 * both simulators say when each flow ends. Costs, latencies and contention are off on both sides, so that only the
 * sharing is compared. usage: sharing CASES (run in the source folder); exit status 1 beyond 5 %. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <polyccl/simulator.h>
#include <polyccl/topology.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>

enum { MAX_FLOWS = 32, MAX_HOPS = 32, MAX_LINE = 1024 };
static const double CHUNK = 1 << 20, WITHIN = 0.05;

typedef struct flow {
  int src, dst, chunks;
  double ours, theirs; /* us */
} flow;

typedef struct test_case {
  char name[MAX_LINE], spec[MAX_LINE];
  flow flow[MAX_FLOWS];
  int flows;
  double cap; /* GB/s of a thread block; 0: none */
} test_case;

static void die(const char *what, const char *why) {
  fprintf(stderr, "sharing: %s: %s\n", what, why);
  exit(2);
}

static void trim(char *text) {
  size_t length = strlen(text), start = strspn(text, " ");
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\n')) {
    text[--length] = '\0';
  }
  memmove(text, text + start, strlen(text + start) + 1);
}

static bool parse_case(char *line, test_case *c) {
  char *save, *name = strtok_r(line, "|", &save), *spec = strtok_r(NULL, "|", &save),
              *flows = strtok_r(NULL, "|", &save), *cap = strtok_r(NULL, "|", &save);
  if (cap == NULL || line[0] == '#') {
    return false;
  }
  *c = (test_case){.cap = atof(cap)};
  snprintf(c->name, sizeof c->name, "%s", name);
  snprintf(c->spec, sizeof c->spec, "%s", spec);
  trim(c->name);
  trim(c->spec);
  for (char *f = strtok_r(flows, " ", &save); f != NULL; f = strtok_r(NULL, " ", &save)) {
    flow *next = &c->flow[c->flows++];
    if (c->flows > MAX_FLOWS || sscanf(f, "%d>%d:%d", &next->src, &next->dst, &next->chunks) != 3) {
      die(c->name, "a flow is src>dst:MiB");
    }
  }
  return true;
}

/* Only sharing is left: no costs, no latencies, no memory limits, messages of any size. */
static polyccl_topology *open_bare(const test_case *c) {
  polyccl_topology *t;
  if (polyccl_topology_open(c->spec, &t) != POLYCCL_SUCCESS) {
    die(c->name, polyccl_last_error());
  }
  for (size_t i = 0; i < t->links; i++) {
    t->link[i].latency = 0;
  }
  for (size_t i = 0; i < t->models; i++) {
    polyccl_protocol_model *p = &t->model[i].protocol[POLYCCL_SIMPLE];
    *p = (polyccl_protocol_model){
        .copy_bandwidth = c->cap > 0 ? c->cap : 1e6, .efficiency = 1, .slot_bytes = (uint64_t)1 << 40, .fifo_depth = 2};
    t->model[i].reduce_bandwidth = t->model[i].local_bandwidth = 1e9;
    t->model[i].contention = 0;
  }
  return t;
}

/* ---- ours ---- */

/* A thread block sends each flow, another receives it. */
static polyccl_plan *make_plan(const test_case *c, int ranks) {
  int total = 0;
  char *text = NULL;
  size_t length;
  FILE *to = open_memstream(&text, &length);
  for (int i = 0; i < c->flows; i++) {
    total = c->flow[i].chunks > total ? c->flow[i].chunks : total;
  }
  fprintf(to, "polyccl-plan 1\nname \"flows\"\ncollective custom\nranks %d\nchunks %d\ndepth 2\n", ranks, total);
  for (int r = 0; r < ranks; r++) {
    fprintf(to, "rank %d scratch 0\n", r);
    for (int i = 0; i < c->flows; i++) {
      const flow *f = &c->flow[i];
      if (f->src == r) {
        fprintf(to, "tb\nsend i0 x%d to %d.%d\n", f->chunks, f->dst, i);
      }
      if (f->dst == r) {
        fprintf(to, "tb\nrecv o0 x%d from %d.%d\n", f->chunks, f->src, i);
      }
    }
  }
  fclose(to);
  polyccl_plan *plan;
  if (polyccl_plan_parse(c->name, text, length, &plan) != POLYCCL_SUCCESS) {
    die(c->name, polyccl_last_error());
  }
  free(text);
  return plan;
}

static void simulate_ours(test_case *c, const polyccl_topology *t) {
  polyccl_plan *plan = make_plan(c, t->ranks);
  polyccl_sim_options options = POLYCCL_SIM_DEFAULTS;
  options.bytes = (uint64_t)plan->chunks * (uint64_t)CHUNK;
  options.keep = POLYCCL_SIM_TIMELINE;
  options.tolerance = 0;
  polyccl_simulation *s;
  if (polyccl_simulate(plan, t, &options, &s) != POLYCCL_SUCCESS) {
    die(c->name, polyccl_last_error());
  }
  for (size_t i = 0; i < s->records; i++) {
    const polyccl_sim_record *r = &s->record[i];
    const polyccl_step *step = &plan->step[plan->tb[plan->rank[r->rank].tb + r->tb].step + r->step];
    if (r->state == POLYCCL_SIM_BUSY && step->op == POLYCCL_STEP_SEND) {
      c->flow[plan->connection[step->send].channel].ours = r->end;
    }
  }
  polyccl_simulation_destroy(s);
  polyccl_plan_destroy(plan);
}

/* ---- SimGrid's ---- */

/* A host for each end of each flow, so that every flow may have a link of its own: its thread block. */
static void write_platform(const test_case *c, const polyccl_topology *t, FILE *to) {
  fprintf(to,
          "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
          "<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n");
  for (int i = 0; i < c->flows; i++) {
    fprintf(to, "<host id=\"a%d\" speed=\"1Gf\"/><host id=\"b%d\" speed=\"1Gf\"/>\n", i, i);
  }
  for (size_t i = 0; i < t->links; i++) {
    fprintf(to, "<link id=\"l%zu\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n", i, t->link[i].bandwidth * 1e9);
  }
  for (int i = 0; i < c->flows && c->cap > 0; i++) {
    fprintf(to, "<link id=\"c%d\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n", i, c->cap * 1e9);
  }
  for (int i = 0; i < c->flows; i++) {
    int32_t links[MAX_HOPS];
    size_t count;
    if (polyccl_topology_route(t, c->flow[i].src, c->flow[i].dst, links, MAX_HOPS, &count) != POLYCCL_SUCCESS ||
        count > MAX_HOPS) {
      die(c->name, polyccl_last_error());
    }
    fprintf(to, "<route src=\"a%d\" dst=\"b%d\" symmetrical=\"NO\">", i, i);
    for (size_t k = 0; k < count; k++) {
      fprintf(to, "<link_ctn id=\"l%d\"/>", (int)links[k]);
    }
    fprintf(to, c->cap > 0 ? "<link_ctn id=\"c%d\"/></route>\n" : "</route><!-- %d -->\n", i);
  }
  fprintf(to, "</zone>\n</platform>\n");
}

static test_case *current; /* actors get text only */

static void sender(int argc, char **argv) {
  (void)argc;
  sg_mailbox_put(sg_mailbox_by_name(argv[0]), argv[0], (long)(current->flow[atoi(argv[0])].chunks * CHUNK));
}

static void receiver(int argc, char **argv) {
  (void)argc;
  sg_mailbox_get(sg_mailbox_by_name(argv[0]));
  current->flow[atoi(argv[0])].theirs = simgrid_get_clock() * 1e6;
}

static void simulate_theirs(test_case *c, const polyccl_topology *t) {
  char path[] = "/tmp/sharing-XXXXXX.xml";
  int fd = mkstemps(path, 4);
  FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (to == NULL) {
    die(path, "cannot write");
  }
  write_platform(c, t, to);
  fclose(to);
  char *arguments[] = {(char *)"sharing",
                       (char *)"--log=root.thres:warning",
                       (char *)"--cfg=network/model:CM02",
                       (char *)"--cfg=network/latency-factor:1",
                       (char *)"--cfg=network/bandwidth-factor:1",
                       (char *)"--cfg=network/weight-S:0",
                       (char *)"--cfg=network/TCP-gamma:0",
                       (char *)"--cfg=network/crosstraffic:0",
                       NULL};
  int argc = sizeof arguments / sizeof arguments[0] - 1;
  simgrid_init(&argc, arguments);
  simgrid_load_platform(path);
  unlink(path);
  current = c;
  static char number[MAX_FLOWS][16];
  for (int i = 0; i < c->flows; i++) {
    char host[16];
    snprintf(number[i], sizeof number[i], "%d", i);
    char *argument[] = {number[i], NULL};
    snprintf(host, sizeof host, "a%d", i);
    sg_actor_create("sender", sg_host_by_name(host), sender, 1, argument);
    snprintf(host, sizeof host, "b%d", i);
    sg_actor_create("receiver", sg_host_by_name(host), receiver, 1, argument);
  }
  simgrid_run();
}

/* ---- the table ---- */

/* Prints the case; 1 where they differ. */
static int compare(test_case *c) {
  polyccl_topology *t = open_bare(c);
  simulate_ours(c, t);
  simulate_theirs(c, t);
  double worst = 0;
  for (int i = 0; i < c->flows; i++) {
    double off = c->flow[i].theirs > 0 ? fabs(c->flow[i].ours / c->flow[i].theirs - 1) : 1;
    worst = off > worst ? off : worst;
  }
  printf("| %s | %s |", c->name, c->spec);
  for (int i = 0; i < c->flows; i++) {
    printf("%s %.1f / %.1f", i > 0 ? "," : "", c->flow[i].ours, c->flow[i].theirs);
  }
  printf(" | %.2f %% |\n", worst * 100);
  fflush(stdout);
  polyccl_topology_destroy(t);
  return worst > WITHIN;
}

/* SimGrid starts once in a process. */
static bool compare_apart(test_case *c) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    _exit(compare(c));
  }
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv) {
  FILE *cases = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (cases == NULL) {
    die("usage", "sharing CASES");
  }
  printf("| case | topology | end of each flow, us: PolyCCL / SimGrid | largest difference |\n|---|---|---|---|\n");
  char line[MAX_LINE];
  int count = 0, apart = 0;
  while (fgets(line, sizeof line, cases) != NULL) {
    test_case c;
    if (parse_case(line, &c)) {
      apart += !compare_apart(&c);
      count++;
    }
  }
  fclose(cases);
  fprintf(stderr, "%d cases, %d beyond %g %%\n", count, apart, WITHIN * 100);
  return count == 0 || apart > 0;
}
