#include "option.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <polyccl/plan.h>

#include "base/options.h"
#include "program_args.h"
#include "sizes.h"
#include "tools.h"

const char *const pccl_alloc_words[] = {"private", "shared", NULL};
const char *const pccl_order_words[] = {
    [POLYCCL_BATCH_MAJOR] = "batch-major", [POLYCCL_TASK_MAJOR] = "task-major", NULL};
const char *const pccl_format_words[] = {[POLYCCL_FORMAT_PLAN] = "plan",
                                         [POLYCCL_FORMAT_XML] = "xml",
                                         [POLYCCL_FORMAT_XML_AZURE] = "azure",
                                         [POLYCCL_FORMAT_XML_RCCL] = "rccl",
                                         NULL};
const char *const pccl_schedule_words[] = {"hpds", "round-robin", "best", NULL};

bool pccl_tool_number(const char *text, uint64_t min, uint64_t max, uint64_t *value) {
  uint64_t number;
  if (!pccl_parse_number(text, &number) || number < min || number > max) {
    return false;
  }
  *value = number;
  return true;
}

const char *pccl_option_kind(const pccl_tool_option *option) {
  static const char *const names[] = {"flag", "number", "size", "sizes", "share",     "word",
                                      "text", "list",   "word", "text",  "parameter", "path"};
  return names[option->takes];
}

/* ---- near misses ---- */

/* Counts the letters to insert, delete, change or swap with their neighbour; returns max + 1 for more than `max`. */
static size_t edits_between(const char *a, const char *b, size_t max) {
  enum { ROOM = 32 };
  size_t row[3][ROOM], m = strlen(a), n = strlen(b);
  if (m >= ROOM || n >= ROOM) {
    return max + 1;
  }
  for (size_t i = 0; i <= m; i++) {
    size_t *now = row[i % 3], *above = row[(i + 2) % 3], *two_above = row[(i + 1) % 3];
    for (size_t k = 0; k <= n; k++) {
      if (i == 0 || k == 0) {
        now[k] = i + k;
        continue;
      }
      size_t best = above[k - 1] + (a[i - 1] != b[k - 1]);
      best = above[k] + 1 < best ? above[k] + 1 : best;
      best = now[k - 1] + 1 < best ? now[k - 1] + 1 : best;
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && two_above[k - 2] + 1 < best) {
        best = two_above[k - 2] + 1;
      }
      now[k] = best;
    }
  }
  return row[m % 3][n] < max ? row[m % 3][n] : row[m % 3][n] == max ? max : max + 1;
}

const char *pccl_nearest(const char *typed, const char *(*name)(const void *from, size_t index), const void *from,
                         size_t count) {
  size_t length = strcspn(typed, "="), max = length > 5 ? 2 : length > 2 ? 1 : 0;
  char word[32];
  if (length == 0 || length >= sizeof word) {
    return NULL;
  }
  memcpy(word, typed, length);
  word[length] = '\0';
  const char *nearest = NULL;
  for (size_t i = 0; i < count; i++) {
    size_t edits = edits_between(word, name(from, i), max);
    if (edits <= max) {
      nearest = name(from, i);
      max = edits > 0 ? edits - 1 : 0;
    }
  }
  return nearest;
}

static const char *option_name(const void *from, size_t index) { return ((const pccl_tool_option *)from)[index].name; }

static size_t count_options(const pccl_tool_option *options) {
  size_t count = 0;
  while (options[count].name != NULL) {
    count++;
  }
  return count;
}

static int refuse_unexpected(const char *tool, const pccl_tool_option *options, const char *argument) {
  for (const pccl_tool_option *option = options; option->name != NULL; option++) {
    size_t length = strlen(option->name);
    if (option->takes == PCCL_TAKES_NOTHING && length > 0 && strncmp(argument, option->name, length) == 0 &&
        argument[length] == '=') {
      return pccl_tool_usage(tool, "%s takes no value, not \"%.200s\"", option->name, argument + length + 1);
    }
  }
  const char *near = argument[0] == '-' ? pccl_nearest(argument, option_name, options, count_options(options)) : NULL;
  return near != NULL ? pccl_tool_usage(tool, "unexpected argument \"%s\" (is it %s?)", argument, near)
                      : pccl_tool_usage(tool, "unexpected argument \"%s\" (see polyccl %s --help)", argument, tool);
}

/* ---- values ---- */

static int find_word(const char *const *words, const char *value) {
  int at = 0;
  while (words[at] != NULL && strcmp(words[at], value) != 0) {
    at++;
  }
  return words[at] != NULL ? at : -1;
}

#define DEFINE_PARSE(what)                                                                                \
  bool pccl_parse_##what(const char *name, int *value) {                                                  \
    polyccl_##what found;                                                                                 \
    return polyccl_##what##_parse(name, &found) == POLYCCL_SUCCESS ? (*value = (int)found, true) : false; \
  }
DEFINE_PARSE(dtype)
DEFINE_PARSE(redop)
DEFINE_PARSE(protocol)
DEFINE_PARSE(collective)

/* strtod() alone would accept "nan", "inf", spaces and hexadecimal. */
static bool parse_share(const char *text, double *value) {
  char *end;
  if (text[0] == '\0' || text[strspn(text, "0123456789.eE-")] != '\0' || text[0] == '-') {
    return false;
  }
  double number = strtod(text, &end);
  *value = number;
  return *end == '\0' && number >= 0 && number <= 1;
}

/* Returns false if the value is wrong; `why` may then say more. */
static bool take_value(const pccl_tool_option *option, void *into, const char *value, char *why, size_t room) {
  void *at = (char *)into + option->at;
  uint64_t number = 0;
  bool good = false;
  switch (option->takes) {
    case PCCL_TAKES_NUMBER:
      good = pccl_tool_number(value, option->min, option->max, &number);
      return good ? (memcpy(at, &(int){(int)number}, sizeof(int)), true) : false;
    case PCCL_TAKES_SIZE:
      good = pccl_parse_size(value, &number) && number >= option->min && number <= option->max;
      return good ? (memcpy(at, &number, sizeof number), true) : false;
    case PCCL_TAKES_SIZES: return pccl_sizes_parse(value, at, why, room);
    case PCCL_TAKES_SHARE: return parse_share(value, at);
    case PCCL_TAKES_WORD: {
      int word = find_word(option->words, value);
      return word >= 0 ? (memcpy(at, &word, sizeof word), true) : false;
    }
    case PCCL_TAKES_TEXT: memcpy(at, &value, sizeof value); return value[0] != '\0';
    case PCCL_TAKES_LIST:
    case PCCL_TAKES_JOINED: return option->take(into, value);
    case PCCL_TAKES_NAME: {
      int name;
      return option->parse_name(value, &name) ? (memcpy(at, &name, sizeof name), true) : false;
    }
    case PCCL_TAKES_PARAMETER:
      return option->take != NULL ? option->take(into, value) : pccl_program_args_add(at, value);
    default: return false;
  }
}

static void describe_words(const char *const *words, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; words[i] != NULL && used < room; i++) {
    const char *joint = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
    int length = snprintf(text + used, room - used, "%s%s", joint, words[i]);
    used += length > 0 ? (size_t)length : 0;
  }
}

static void describe_expected(const pccl_tool_option *option, char *text, size_t room) {
  unsigned long long min = (unsigned long long)option->min, max = (unsigned long long)option->max;
  char low[32], high[32];
  switch (option->takes) {
    case PCCL_TAKES_NUMBER:
      snprintf(text, room, "%s from %llu to %llu", option->expects != NULL ? option->expects : "a number", min, max);
      break;
    case PCCL_TAKES_SIZE:
      snprintf(text, room, "%s from %s to %s", option->expects, pccl_size_word(option->min, low, sizeof low),
               pccl_size_word(option->max, high, sizeof high));
      break;
    case PCCL_TAKES_SIZES: snprintf(text, room, "%s", PCCL_SIZES_EXPECTED); break;
    case PCCL_TAKES_SHARE: snprintf(text, room, "a share from 0 to 1"); break;
    case PCCL_TAKES_WORD: describe_words(option->words, text, room); break;
    case PCCL_TAKES_PARAMETER: snprintf(text, room, "NAME=VALUE"); break;
    default: snprintf(text, room, "%s", option->expects); break;
  }
}

static int wrong_value(const char *tool, const pccl_tool_option *option, const char *value, const char *why) {
  char expected[300];
  describe_expected(option, expected, sizeof expected);
  if (value == NULL) {
    return pccl_tool_usage(tool, "%s expects %s, but nothing follows it", option->name, expected);
  }
  return pccl_tool_usage(tool, "%s expects %s, not \"%.200s\"%s", option->name, expected, value, why);
}

/* ---- arguments ---- */

static const pccl_tool_option *find_option(const pccl_tool_option *options, const char *argument) {
  for (const pccl_tool_option *option = options; option->name != NULL; option++) {
    size_t length = strlen(option->name);
    if (length > 0 && strncmp(argument, option->name, length) == 0 &&
        (argument[length] == '\0' || (argument[length] == '=' && option->takes != PCCL_TAKES_NOTHING) ||
         option->takes == PCCL_TAKES_PARAMETER)) {
      return option;
    }
  }
  return NULL;
}

/* A file name that is also the name of an option is more likely a forgotten value. */
static bool forgot_value(const pccl_tool_option *options, const pccl_tool_option *option, const char *next) {
  return option->takes == PCCL_TAKES_TEXT && next[0] == '-' && find_option(options, next) != NULL;
}

static int take_option(const char *tool, const pccl_tool_option *options, const pccl_tool_option *option, void *into,
                       int argc, char **argv, int *at) {
  const char *rest = argv[*at] + strlen(option->name), *value = NULL;
  char why[160] = "";
  if (option->given > 0) {
    *(bool *)((char *)into + option->given) = true;
  }
  if (option->takes == PCCL_TAKES_NOTHING) {
    *(bool *)((char *)into + option->at) = true;
    return PCCL_EXIT_OK;
  }
  if (option->takes == PCCL_TAKES_JOINED && rest[0] == '\0') {
    return option->take(into, NULL) ? PCCL_EXIT_OK : PCCL_EXIT_INVALID;
  }
  if (rest[0] != '\0') {
    value = rest + (rest[0] == '=' && option->takes != PCCL_TAKES_PARAMETER);
  } else if (*at + 1 < argc && !forgot_value(options, option, argv[*at + 1])) {
    value = argv[++*at];
  }
  return value != NULL && take_value(option, into, value, why, sizeof why) ? PCCL_EXIT_OK
                                                                           : wrong_value(tool, option, value, why);
}

static int take_path(const char *tool, const pccl_tool_option *options, void *into, const char *argument) {
  const pccl_tool_option *path = options;
  while (path->name != NULL && path->name[0] != '\0') {
    path++;
  }
  if (path->name == NULL) {
    return refuse_unexpected(tool, options, argument);
  }
  if (path->take != NULL) {
    return path->take(into, argument) ? PCCL_EXIT_OK : pccl_tool_usage(tool, "out of memory");
  }
  const char **at = (const char **)(void *)((char *)into + path->at);
  if (*at != NULL) {
    return refuse_unexpected(tool, options, argument);
  }
  *at = argument;
  return PCCL_EXIT_OK;
}

int pccl_tool_parse(const char *tool, const pccl_tool_option *options, void *into, int argc, char **argv) {
  bool only_paths = false;
  for (int i = 1; i < argc; i++) {
    if (!only_paths && strcmp(argv[i], "--") == 0) {
      only_paths = true;
      continue;
    }
    const pccl_tool_option *option = only_paths ? NULL : find_option(options, argv[i]);
    int status;
    if (option != NULL) {
      status = take_option(tool, options, option, into, argc, argv, &i);
    } else if (!only_paths && argv[i][0] == '-') {
      status = refuse_unexpected(tool, options, argv[i]);
    } else {
      status = take_path(tool, options, into, argv[i]);
    }
    if (status != PCCL_EXIT_OK) {
      return status;
    }
  }
  return PCCL_EXIT_OK;
}
