/* Recognises the kind of a file by the beginning of its text or, for JSON, by the names of the outermost members.
 * Nothing is parsed, so that a broken file is recognised too. */
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/kind.h"

typedef struct scan {
  const char *at, *end;
} scan;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

static void skip_blanks(scan *s) {
  while (s->at < s->end && is_blank(*s->at)) {
    s->at++;
  }
}

static bool starts_with(const scan *s, const char *word) {
  size_t length = strlen(word);
  return (size_t)(s->end - s->at) >= length && memcmp(s->at, word, length) == 0;
}

static void skip_past(scan *s, const char *mark) {
  const char *found = memmem(s->at, (size_t)(s->end - s->at), mark, strlen(mark));
  s->at = found != NULL ? found + strlen(mark) : s->end;
}

/* ---- XML: the name of the root ---- */

/* Skips what may precede the root. */
static void skip_prolog(scan *s) {
  for (skip_blanks(s); starts_with(s, "<?") || starts_with(s, "<!"); skip_blanks(s)) {
    if (starts_with(s, "<?")) {
      skip_past(s, "?>");
    } else if (starts_with(s, "<!--")) {
      skip_past(s, "-->");
    } else {
      const char *end = memchr(s->at, '>', (size_t)(s->end - s->at));
      const char *subset = memchr(s->at, '[', (size_t)(s->end - s->at));
      skip_past(s, subset != NULL && end != NULL && subset < end ? "]>" : ">");
    }
  }
}

static pccl_kind kind_of_xml(scan s) {
  static const struct {
    const char *root;
    pccl_kind kind;
  } roots[] = {{"algo", PCCL_KIND_PLAN_XML},   {"Algo", PCCL_KIND_FORESTCOLL},
               {"tree", PCCL_KIND_FORESTCOLL}, {"system", PCCL_KIND_NCCL_TOPOLOGY},
               {"topology", PCCL_KIND_HWLOC},  {"svg", PCCL_KIND_PICTURE},
               {"html", PCCL_KIND_PAGE},       {"graphs", PCCL_KIND_NCCL_GRAPHS}};
  skip_prolog(&s);
  s.at += s.at < s.end;
  size_t length = 0;
  while (s.at + length < s.end && (is_word(s.at[length]) || strchr("-.:", s.at[length]) != NULL)) {
    length++;
  }
  for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
    if (strlen(roots[i].root) == length && memcmp(roots[i].root, s.at, length) == 0) {
      return roots[i].kind;
    }
  }
  return PCCL_KIND_XML;
}

/* ---- JSON: the names of the outermost members ---- */

/* Skips a string whose first quote is at s->at. */
static void skip_string(scan *s) {
  for (s->at++; s->at < s->end && *s->at != '"'; s->at++) {
    s->at += *s->at == '\\' && s->at + 1 < s->end;
  }
  s->at += s->at < s->end;
}

/* Skips to the comma or bracket that ends the value. */
static void skip_value(scan *s) {
  size_t depth = 0;
  while (s->at < s->end) {
    char c = *s->at;
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
      return;
    }
    if (c == '"') {
      skip_string(s);
      continue;
    }
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
    s->at++;
  }
}

typedef struct name {
  const char *text;
  size_t length;
} name;

/* Reads the name of the next member and moves to its value; false if there is none. */
static bool next_member(scan *s, name *key) {
  skip_blanks(s);
  if (s->at == s->end || *s->at != '"') {
    return false;
  }
  key->text = s->at + 1;
  skip_string(s);
  key->length = (size_t)(s->at - key->text) - (s->at > key->text && s->at[-1] == '"');
  skip_blanks(s);
  if (s->at == s->end || *s->at != ':') {
    return false;
  }
  s->at++;
  skip_blanks(s);
  return true;
}

static void skip_member(scan *s) {
  skip_value(s);
  s->at += s->at < s->end && *s->at == ',';
}

static bool is_named(name key, const char *text) {
  return key.length == strlen(text) && strncasecmp(key.text, text, key.length) == 0;
}

/* TE-CCL numbers its members: "7-Flows". */
static name without_number(name key) {
  while (key.length > 0 && memchr("0123456789-", key.text[0], 11) != NULL) {
    key.text++;
    key.length--;
  }
  return key;
}

/* Names of members that decide the kind: one alone or, if `second`, two of the same kind. */
static const struct {
  const char *name;
  pccl_kind kind;
  bool second;
} members[] = {
    {"polyccl_topology", PCCL_KIND_TOPOLOGY, false},
    {"traceEvents", PCCL_KIND_TRACE, false},
    {"msccl_type", PCCL_KIND_SCCL, false},
    {"sccl_type", PCCL_KIND_SCCL, false},
    {"input_map", PCCL_KIND_SCCL, true},
    {"output_map", PCCL_KIND_SCCL, true},
    {"gpus", PCCL_KIND_MSCCLPP, true},
    {"collective", PCCL_KIND_MSCCLPP, true},
    {"num_threads_per_block", PCCL_KIND_MSCCLPP, true},
    {"gpus_per_node", PCCL_KIND_TACCL_TOPOLOGY, true},
    {"alpha", PCCL_KIND_TACCL_TOPOLOGY, true},
    {"node_betas_list", PCCL_KIND_TACCL_TOPOLOGY, true},
    {"node_invbws_list", PCCL_KIND_TACCL_TOPOLOGY, true},
    {"remote_beta", PCCL_KIND_TACCL_TOPOLOGY, true},
    {"intranode_sketch", PCCL_KIND_TACCL_SKETCH, false},
    {"internode_sketch", PCCL_KIND_TACCL_SKETCH, false},
    {"multinode_sketch", PCCL_KIND_TACCL_SKETCH, false},
};

static pccl_kind kind_of_object(scan s) {
  int seen[PCCL_KIND_COUNT] = {0};
  name key;
  s.at++;
  for (; next_member(&s, &key); skip_member(&s)) {
    name plain = without_number(key);
    if (is_named(plain, "Flows") || is_named(plain, "Chunk paths")) {
      return PCCL_KIND_TECCL;
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
      pccl_kind kind = members[i].kind;
      if (!is_named(key, members[i].name) || (members[i].second && ++seen[kind] < 2)) {
        continue;
      }
      bool typed = kind == PCCL_KIND_SCCL && !members[i].second;
      return typed && !starts_with(&s, "\"algorithm\"") ? PCCL_KIND_SCCL_OBJECT : kind;
    }
  }
  return PCCL_KIND_JSON;
}

/* A list of events, each with its phase, is the other form of a trace. */
static pccl_kind kind_of_list(scan s) {
  name key;
  s.at++;
  skip_blanks(&s);
  if (starts_with(&s, "{")) {
    for (s.at++; next_member(&s, &key); skip_member(&s)) {
      if (is_named(key, "ph")) {
        return PCCL_KIND_TRACE;
      }
    }
  }
  return PCCL_KIND_JSON;
}

/* ---- text ---- */

/* A Chakra trace begins with a short message that holds the version of the format, such as "0.0.4". */
static bool is_chakra(const scan *s) {
  size_t length = (size_t)(s->end - s->at);
  if (length < 4 || s->at[1] != 0x0a || s->at[2] < 1 || s->at[2] > 16 || length < 3 + (size_t)s->at[2]) {
    return false;
  }
  for (int i = 0; i < s->at[2]; i++) {
    if (strchr("0123456789.", s->at[3 + i]) == NULL || s->at[3 + i] == '\0') {
      return false;
    }
  }
  return true;
}

/* Whether many of the first 512 bytes are control characters. Compiled Lua is left to the sandbox, which refuses it. */
static bool is_noise(const scan *s) {
  enum { ENOUGH = 512, MANY = 16 };
  size_t length = (size_t)(s->end - s->at), controls = 0;
  length = length < ENOUGH ? length : ENOUGH;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)s->at[i];
    controls += (c < 0x20 && (c < '\t' || c > '\r')) || c == 0x7f;
  }
  return controls > length / MANY && !starts_with(s, "\x1bLua");
}

static pccl_kind kind_of_binary(const scan *s) {
  static const struct {
    const char *mark;
    size_t length;
    pccl_kind kind;
  } marks[] = {{"\177ELF", 4, PCCL_KIND_OBJECT},
               {"\x1f\x8b", 2, PCCL_KIND_COMPRESSED},
               {"PK\x03\x04", 4, PCCL_KIND_COMPRESSED},
               {"\xfd\x37zXZ", 5, PCCL_KIND_COMPRESSED},
               {"\x28\xb5\x2f\xfd", 4, PCCL_KIND_COMPRESSED},
               {"BZh", 3, PCCL_KIND_COMPRESSED},
               {"\xff\xfe", 2, PCCL_KIND_UTF16},
               {"\xfe\xff", 2, PCCL_KIND_UTF16}};
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    if ((size_t)(s->end - s->at) >= marks[i].length && memcmp(s->at, marks[i].mark, marks[i].length) == 0) {
      return marks[i].kind;
    }
  }
  return is_chakra(s) ? PCCL_KIND_CHAKRA : is_noise(s) ? PCCL_KIND_BINARY : PCCL_KIND_TEXT;
}

/* A word that stands alone: "local" but not "locals". */
static bool starts_word(const scan *s, const char *word) {
  return starts_with(s, word) && (s->at + strlen(word) == s->end || !is_word(s->at[strlen(word)]));
}

/* A keyword and the name after it, which Lua never has. */
static bool declares_name(const scan *s, const char *keyword) {
  const char *after = s->at + strlen(keyword);
  return starts_word(s, keyword) && s->end - after > 1 && after[0] == ' ' && is_letter(after[1]);
}

static bool is_python(const scan *s) {
  return declares_name(s, "import") || declares_name(s, "def") || declares_name(s, "class") ||
         starts_with(s, "\"\"\"") ||
         (declares_name(s, "from") && memmem(s->at, (size_t)(s->end - s->at), " import ", 8) != NULL);
}

/* A Lua program begins with a comment, a keyword, or a name and what can follow it: a call, an assignment, an index. */
static bool is_lua(scan s) {
  static const char *const words[] = {"local", "function", "for", "if", "while", "repeat", "do", "return", "goto"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (starts_word(&s, words[i])) {
      return true;
    }
  }
  if (starts_with(&s, "--")) {
    return true;
  }
  const char *start = s.at;
  while (s.at < s.end && is_word(*s.at)) {
    s.at++;
  }
  bool is_name = s.at > start && is_letter(*start);
  skip_blanks(&s);
  return is_name && s.at < s.end && strchr("=({[\"'.", *s.at) != NULL && *s.at != '\0';
}

pccl_kind pccl_kind_of(const char *text, size_t length) {
  pccl_skip_mark(&text, &length);
  scan s = {text, text + length};
  pccl_kind binary = kind_of_binary(&s);
  if (binary != PCCL_KIND_TEXT) {
    return binary;
  }
  skip_blanks(&s);
  if (s.at == s.end) {
    return PCCL_KIND_EMPTY;
  }
  if (*s.at == '<') {
    return kind_of_xml(s);
  }
  if (*s.at == '{' || *s.at == '[') {
    return *s.at == '{' ? kind_of_object(s) : kind_of_list(s);
  }
  bool script = starts_with(&s, "#!");
  while (starts_with(&s, "#")) { /* comments of a plan, or of Python */
    const char *line = s.at;
    skip_past(&s, "\n");
    if (script && memmem(line, (size_t)(s.at - line), "python", 6) != NULL) {
      return PCCL_KIND_PYTHON;
    }
    skip_blanks(&s);
    script = false;
  }
  return starts_with(&s, "polyccl-plan") ? PCCL_KIND_PLAN_TEXT
         : is_python(&s)                 ? PCCL_KIND_PYTHON
         : is_lua(s)                     ? PCCL_KIND_LUA
                                         : PCCL_KIND_TEXT;
}
