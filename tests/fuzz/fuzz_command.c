/* Whole command lines: a line of words, as a shell would split it, is what polyccl is called with. The exit status is
 * 0, 1 or 2, an error says something, and nothing stays behind: no file but what -o names, no process, no descriptor.
 * Ranks are threads here, large runs end before they start, and calibration measures nothing. */
#include <dirent.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tools/run_ranks.h"
#include "../../tools/tools.h"
#include "base/map.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
polyccl_result __wrap_pccl_run_all(const pccl_run_args *args, uint64_t *wrong);
polyccl_result __real_pccl_run_all(const pccl_run_args *args, uint64_t *wrong);

enum { MAX_WORDS = 24, MAX_LINE = 2048, MAX_OPTIONS = 200, MAX_SIZES = 64 };

/* ---- runs ---- */

polyccl_result __wrap_pccl_run_all(const pccl_run_args *args, uint64_t *wrong) {
  const uint64_t max_bytes = 1 << 16;
  pccl_run_args small = *args;
  *wrong = 0;
  if (args->seconds != NULL) { /* calibrate: times as of some machine */
    for (size_t i = 0; i < (size_t)PCCL_RUN_PLACEMENTS * 16; i++) {
      args->seconds[i] = 1e-6 * (double)(i + 1);
    }
    return POLYCCL_SUCCESS;
  }
  const polyccl_plan *plan = pccl_run_any_plan(args);
  uint64_t largest = args->has_count ? args->count * 8 : args->sizes.max;
  if (plan->ranks > 4 || largest > max_bytes || (args->has_count && args->count > max_bytes)) {
    return pccl_run_check_memory(args, args->has_count ? (size_t)args->count : (size_t)args->sizes.max);
  }
  small.threads = true;
  small.iterations = 1;
  small.warmup = 0;
  return __real_pccl_run_all(&small, wrong);
}

/* ---- files ---- */

static char folder[] = "/tmp/polyccl-fuzz-XXXXXX";

static const char program_text[] =
    "local ranks = param('ranks', 2, 'ranks')\n"
    "local instances = param('instances', 1, 'copies')\n"
    "if ranks > 4 or instances > 4 then error('too many for this example') end\n"
    "allreduce { ranks = ranks, chunks = ranks, instances = instances, inplace = param('inplace', false, 'one buffer') "
    "}\n"
    "for c = 0, ranks - 1 do\n"
    "  local sum = chunk(c, input, c)\n"
    "  for r = 1, ranks - 1 do sum = chunk((c + r) % ranks, input, c):reduce(sum) end\n"
    "  for r = 0, ranks - 1 do sum:copy(r, output, c) end\n"
    "end\n";

typedef struct sample {
  const char *name, *made_by; /* a command line; NULL: written here */
  char *text;
  size_t length;
} sample;

static sample samples[] = {
    {"in/p.lua", NULL, NULL, 0},
    {"in/p.plan", "compile in/p.lua -o in/p.plan", NULL, 0},
    {"in/p.xml", "compile in/p.lua --format xml -o in/p.xml", NULL, 0},
    {"in/t.json", "topology ring:2 --json -o in/t.json", NULL, 0},
    {"in/trace.json", "run in/p.plan --threads --size 8 --iters 1 --trace in/trace.json", NULL, 0},
    {"in/empty", NULL, NULL, 0}};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static FILE *report; /* standard error as it was at first */

static void die(const char *what, const char *line) {
  fprintf(report, "%s: %s\n", what, line);
  fflush(report);
  abort();
}

static void write_file(const char *name, const char *text, size_t length) {
  FILE *file = fopen(name, "w");
  if (file == NULL || fwrite(text, 1, length, file) != length || fclose(file) != 0) {
    die("cannot write", name);
  }
}

static bool unchanged(const sample *s) {
  static char text[1 << 20];
  FILE *file = fopen(s->name, "r");
  size_t length = file != NULL ? fread(text, 1, sizeof text, file) : 0;
  bool same = file != NULL && length == s->length && memcmp(text, s->text, length) == 0;
  if (file != NULL) {
    fclose(file);
  }
  return same;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where) {
  (void)status;
  (void)type;
  if (where->level > 0 && strcmp(path, "./in") != 0 && strncmp(path, "./in/", 5) != 0 && remove(path) != 0) {
    die("cannot remove", path);
  }
  return 0;
}

/* What is written under a name of its own first must have its own name at the end, or be gone. */
static void tidy(const char *line) {
  static const char *const places[] = {".", "in"};
  bool more = false;
  for (int i = 0; i < 2; i++) {
    DIR *dir = opendir(places[i]);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
      size_t length = strlen(entry->d_name);
      if (length > 4 && strcmp(entry->d_name + length - 4, ".tmp") == 0 && strstr(line, ".tmp") == NULL) {
        die("left behind", entry->d_name);
      }
      more = more || (i == 0 && entry->d_name[0] != '.' && strcmp(entry->d_name, "in") != 0) ||
             (i == 0 && entry->d_name[0] == '.' && length > 2);
    }
    closedir(dir);
  }
  if (more) {
    nftw(".", remove_entry, 8, FTW_DEPTH | FTW_PHYS);
  }
  for (int i = 0; i < SAMPLES; i++) {
    if (!unchanged(&samples[i])) {
      remove(samples[i].name);
      write_file(samples[i].name, samples[i].text, samples[i].length);
    }
  }
}

static int count_descriptors(void) {
  int count = 0;
  DIR *dir = opendir("/proc/self/fd");
  while (dir != NULL && readdir(dir) != NULL) {
    count++;
  }
  if (dir != NULL) {
    closedir(dir);
  }
  return count;
}

/* The sanitizer may have one of its own. */
static int count_children(void) {
  int count = 0;
  long child;
  FILE *children = fopen("/proc/thread-self/children", "r");
  while (children != NULL && fscanf(children, "%ld", &child) == 1) {
    count++;
  }
  if (children != NULL) {
    fclose(children);
  }
  return count;
}

/* ---- words ---- */

static char option_text[1 << 14];
static const char *words[MAX_OPTIONS];
static size_t word_count;

static void add_word(const char *word) {
  if (word_count < MAX_OPTIONS) {
    words[word_count++] = word;
  }
}

static const char *const other_words[] = {"help",
                                          "--help",
                                          "--version",
                                          "--options",
                                          "--",
                                          "-",
                                          "-o",
                                          "-p",
                                          "out",
                                          "out.svg",
                                          "/dev/null",
                                          "in",
                                          "in/p.lua",
                                          "in/p.plan",
                                          "in/p.xml",
                                          "in/t.json",
                                          "in/trace.json",
                                          "in/empty",
                                          "ring:2",
                                          "fully:4",
                                          "ndv4:1",
                                          "ndv4:2,nic=25",
                                          "host:2",
                                          "ranks=2",
                                          "ranks=3",
                                          "instances=2",
                                          "inplace=true",
                                          "plan",
                                          "xml",
                                          "azure",
                                          "connection",
                                          "state",
                                          "hpds",
                                          "Simple",
                                          "LL",
                                          "LL128",
                                          "batch-major",
                                          "task-major",
                                          "f32",
                                          "f16",
                                          "u8",
                                          "bool",
                                          "f8e4m3",
                                          "sum",
                                          "avg",
                                          "private",
                                          "shared",
                                          "c",
                                          "cuda",
                                          "hip",
                                          "allreduce",
                                          "0",
                                          "1",
                                          "2",
                                          "8",
                                          "-1",
                                          "1k",
                                          "64k",
                                          "1:64k:4",
                                          "0:64:+16",
                                          "2147483647",
                                          "2147483648",
                                          "4294967296",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "1e30",
                                          "nan",
                                          "0x10",
                                          "5x",
                                          "1:2:0",
                                          "1g",
                                          "1152921504606846976"};

/* Splits the line in place. A path outside the folder becomes a name in it. */
static int split(char *line, char **argv) {
  static char name[] = "polyccl";
  int argc = 0;
  argv[argc++] = name;
  for (char *save = NULL, *word = strtok_r(line, " \n", &save); word != NULL && argc < MAX_WORDS;
       word = strtok_r(NULL, " \n", &save)) {
    if (strncmp(word, "in/", 3) != 0 && strcmp(word, "/dev/null") != 0) {
      for (char *at = word; (at = strchr(at, '/')) != NULL; *at = '_') {
      }
    }
    argv[argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
  }
  argv[argc] = NULL;
  return argc;
}

/* Right, but too long for a fuzzer. */
static bool takes_long(int argc, char **argv) {
  bool batches = false, large = false, limited = false;
  bool calibrates = argc > 1 && strcmp(argv[1], "calibrate") == 0; /* without --max it fits times up to 64 MiB */
  uint64_t max = calibrates ? 1 << 16 : 1 << 30;
  for (int i = 1; i < argc; i++) {
    const char *value = strchr(argv[i], '=') != NULL ? strchr(argv[i], '=') + 1 : argv[i];
    pccl_sizes sizes;
    char why[200];
    if (strcmp(value, "best") == 0 || strcmp(value, "set") == 0 || strstr(argv[i], "--seconds") != NULL ||
        strcmp(argv[i], "--generated") == 0) {
      return true;
    }
    if (pccl_sizes_parse(value, &sizes, why, sizeof why) &&
        (pccl_sizes_count(&sizes) > MAX_SIZES || (sizes.max > max && sizes.max < (uint64_t)1 << 50))) {
      return true;
    }
    limited = limited || strncmp(argv[i], "--max", 5) == 0;
    batches = batches || strncmp(argv[i], "--micro-batches", 15) == 0;
    large = large || strspn(value, "0123456789") > 4 || strspn(value + strcspn(value, ":"), ":0123456789") > 4;
  }
  return (batches && large) || (calibrates && !limited);
}

/* ---- the target ---- */

static int run_line(const char *text, size_t size) {
  static char line[MAX_LINE + 1], copy[MAX_LINE + 1];
  char *argv[MAX_WORDS + 1];
  if (size > MAX_LINE || memchr(text, '\0', size) != NULL) {
    return -1;
  }
  memcpy(line, text, size);
  line[size] = '\0';
  memcpy(copy, line, size + 1);
  int argc = split(line, argv);
  if (takes_long(argc, argv)) {
    return -1;
  }
  char *said = NULL;
  size_t length = 0;
  FILE *before = stderr;
  stderr = open_memstream(&said, &length);
  int status = pccl_command(argc, argv);
  fclose(stderr);
  stderr = before;
  if (status < 0 || status > 2) {
    die("exit status out of range", copy);
  }
  if (status != 0 && (length == 0 || said[length - 1] != '\n' || (argc > 1 && strstr(said, "polyccl") == NULL))) {
    die("failed without a word", copy);
  }
  free(said);
  return status;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  report = fdopen(dup(2), "w");
  setenv("POLYCCL_LUA_INSTRUCTIONS", "1m", 1);
  setenv("POLYCCL_LUA_MEMORY", "64m", 1);
  setenv("POLYCCL_BUFFER", "1m", 1);
  setenv("POLYCCL_TIMEOUT", "5", 1);
  if (mkdtemp(folder) == NULL || chdir(folder) != 0 || mkdir("in", 0777) != 0) {
    return 1;
  }
  write_file("in/p.lua", program_text, strlen(program_text));
  write_file("in/empty", "", 0);
  FILE *list = freopen("options", "w", stdout);
  run_line("help --options", 14);
  fflush(list);
  FILE *options = fopen("options", "r");
  size_t length = options != NULL ? fread(option_text, 1, sizeof option_text - 1, options) : 0;
  if (options != NULL) {
    fclose(options);
  }
  option_text[length] = '\0';
  int column = 0;
  for (char *save = NULL, *word = strtok_r(option_text, " \n", &save); word != NULL;
       word = strtok_r(NULL, " \n", &save)) {
    if (column++ % 3 == 1) {
      add_word(word);
    }
  }
  for (const pccl_tool *const *tool = pccl_tools; *tool != NULL; tool++) {
    add_word((*tool)->name);
  }
  for (size_t i = 0; i < sizeof other_words / sizeof other_words[0]; i++) {
    add_word(other_words[i]);
  }
  if (freopen("/dev/null", "w", stdout) == NULL) {
    return 1;
  }
  for (int i = 0; i < SAMPLES; i++) {
    if (samples[i].made_by != NULL && run_line(samples[i].made_by, strlen(samples[i].made_by)) != 0) {
      die("cannot make", samples[i].name);
    }
    FILE *file = fopen(samples[i].name, "r");
    samples[i].text = malloc(1 << 20);
    samples[i].length = file != NULL ? fread(samples[i].text, 1, 1 << 20, file) : 0;
    if (file != NULL) {
      fclose(file);
    }
  }
  tidy("");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char line[MAX_LINE + 1];
  int descriptors = count_descriptors(), children = count_children();
  int status = run_line((const char *)data, size);
  if (status < 0) {
    return -1;
  }
  memcpy(line, data, size);
  line[size] = '\0';
  if (count_children() != children) {
    die("a process was left", line);
  }
  if (count_descriptors() != descriptors) {
    die("a descriptor was left open", line);
  }
  tidy(line);
  return 0;
}

/* Words are added, replaced, dropped and joined with '='; now and then bytes change. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
  uint64_t bits = pccl_mix64(seed);
  if (bits % 4 == 0 || word_count == 0) {
    return LLVMFuzzerMutate(data, size, max);
  }
  char text[MAX_LINE + 1], made[2 * MAX_LINE + 64];
  size_t length = size < MAX_LINE ? size : MAX_LINE, used = 0;
  memcpy(text, data, length);
  text[length] = '\0';
  int count = 1, at = 0;
  for (size_t i = 0; i < length; i++) {
    count += text[i] == ' ';
  }
  int chosen = (int)((bits >> 8) % (unsigned)(count + 1));
  unsigned how = (bits >> 40) % 4;
  const char *word = words[(bits >> 16) % word_count];
  char *save = NULL;
  for (char *old = strtok_r(text, " \n", &save); old != NULL; old = strtok_r(NULL, " \n", &save), at++) {
    if (at == chosen && how == 3) {
      continue; /* dropped */
    }
    const char *joint = used == 0 ? "" : at == chosen && how == 2 ? "=" : " ";
    used += (size_t)snprintf(made + used, sizeof made - used, "%s%s", joint, at == chosen && how == 1 ? word : old);
    if (at == chosen && how == 0) {
      used += (size_t)snprintf(made + used, sizeof made - used, " %s", word);
    }
  }
  if (at <= chosen) {
    used += (size_t)snprintf(made + used, sizeof made - used, "%s%s", used > 0 ? " " : "", word);
  }
  used = used < max ? used : max;
  memcpy(data, made, used);
  return used;
}
