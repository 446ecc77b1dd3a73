#include "language/source.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdint.h>
#include <string.h>

#include "language/sandbox.h"

/* ---- the price of a text ---- */

enum {
  PER_BYTE = 4,
  PER_VARIABLE_LIST = 28, /* the parser looks a name up in up to 200 variables and 255 upvalues of each function */
  STEPS_PER_INSTRUCTION = 4,
  MAX_FUNCTIONS = 256, /* nested; Lua allows fewer */
  LONG_NUMBER = 6,     /* characters; there are few shorter ones, or they stand in the instruction itself */
  CHARGE_EVERY = 4096  /* bytes */
};

typedef struct pricing {
  lua_State *lua;
  const char *at, *end;
  polyccl_location place;
  uint64_t price;                           /* not yet charged */
  uint64_t jumps, branches, marks, numbers; /* counts so far: and, or; else; goto, break, labels; long numbers */
  char before;                              /* last character that is no space */
  int blocks, functions;                    /* that are open here */
  bool is_function[MAX_FUNCTIONS];          /* of the open blocks */
} pricing;

static void open_block(pricing *p, bool function) {
  if (p->blocks < MAX_FUNCTIONS) {
    p->is_function[p->blocks] = function;
    p->functions += function;
  }
  p->blocks++;
}

static void close_block(pricing *p) {
  if (p->blocks > 0 && --p->blocks < MAX_FUNCTIONS) {
    p->functions -= p->is_function[p->blocks];
  }
}

static bool word_is(const char *word, size_t length, const char *wanted) {
  return strlen(wanted) == length && memcmp(word, wanted, length) == 0;
}

static void price_word(pricing *p, const char *word, size_t length) {
  if (word_is(word, length, "and") || word_is(word, length, "or")) {
    p->price += ++p->jumps / STEPS_PER_INSTRUCTION;
  } else if (word_is(word, length, "else") || word_is(word, length, "elseif")) {
    p->price += ++p->branches / STEPS_PER_INSTRUCTION;
  } else if (word_is(word, length, "goto") || word_is(word, length, "break")) {
    p->price += ++p->marks;
  } else if (word_is(word, length, "function")) {
    open_block(p, true);
  } else if (word_is(word, length, "do") || word_is(word, length, "if") || word_is(word, length, "repeat")) {
    open_block(p, false);
  } else if (word_is(word, length, "end") || word_is(word, length, "until")) {
    close_block(p);
  } else if (p->before != '.' && p->before != ':') {
    p->price += PER_VARIABLE_LIST * (uint64_t)(p->functions + 1);
  }
}

/* Skips a long text or comment, "[==[ ... ]==]". Returns false if none begins here. */
static bool skip_long_text(pricing *p) {
  const char *at = p->at + 1;
  size_t level = 0;
  while (at < p->end && *at == '=') {
    at++;
    level++;
  }
  if (at >= p->end || *at != '[') {
    return false;
  }
  for (at++; at < p->end; at++) {
    p->place.line += *at == '\n';
    if (*at != ']') {
      continue;
    }
    size_t run = 0;
    while (at + 1 + run < p->end && at[1 + run] == '=' && run < level) {
      run++;
    }
    if (run == level && at + 1 + run < p->end && at[1 + run] == ']') {
      p->at = at + run + 2;
      return true;
    }
    at += run;
  }
  p->at = p->end;
  return true;
}

static void skip_quoted(pricing *p) {
  char quote = *p->at++;
  while (p->at < p->end && *p->at != quote && *p->at != '\n') {
    if (*p->at == '\\' && p->at + 1 < p->end) {
      p->at++;
      if (*p->at == 'z') { /* blanks follow, with ends of lines among them */
        while (p->at + 1 < p->end && isspace((unsigned char)p->at[1])) {
          p->place.line += *++p->at == '\n';
        }
      }
      p->place.line += *p->at == '\n';
    }
    p->at++;
  }
  p->at += p->at < p->end && *p->at == quote;
}

static void skip_comment(pricing *p) {
  p->at += 2;
  if (p->at < p->end && *p->at == '[' && skip_long_text(p)) {
    return;
  }
  const char *end = memchr(p->at, '\n', (size_t)(p->end - p->at));
  p->at = end != NULL ? end : p->end;
}

static void skip_word(pricing *p) {
  const char *word = p->at;
  bool number = isdigit((unsigned char)*word);
  while (p->at < p->end && (isalnum((unsigned char)*p->at) || *p->at == '_' || (number && *p->at == '.'))) {
    p->at++;
  }
  if (!number) {
    price_word(p, word, (size_t)(p->at - word));
  } else if (p->at - word >= LONG_NUMBER) {
    p->price += ++p->numbers / (4 * STEPS_PER_INSTRUCTION); /* numbers can be chosen to collide in a table */
  }
}

static void price_next(pricing *p) {
  const char *at = p->at;
  bool more = at + 1 < p->end;
  if (*at == '-' && more && at[1] == '-') {
    skip_comment(p);
    return;
  }
  if (isspace((unsigned char)*at)) {
    p->place.line += *at == '\n';
    p->at++;
    return;
  }
  char before = *at;
  if (isalnum((unsigned char)*at) || *at == '_') {
    skip_word(p);
  } else if (*at == '"' || *at == '\'') {
    skip_quoted(p);
  } else if (*at != '[' || !skip_long_text(p)) {
    bool concatenates = *at == '.' && more && at[1] == '.';
    bool label = *at == ':' && more && at[1] == ':';
    p->price += label ? ++p->marks : 0;
    before = concatenates || label ? ' ' : before;
    p->at += concatenates || label ? 2 : 1;
  }
  p->before = before;
}

static void price_text(lua_State *lua, const char *name, const char *text, size_t length, int line) {
  pricing p = {.lua = lua, .at = text, .end = text + length, .place = {name, line}};
  const char *charged = text;
  while (p.at < p.end) {
    price_next(&p);
    if (p.at - charged >= CHARGE_EVERY || p.at == p.end) {
      pccl_sandbox_charge_parsing(lua, p.price + PER_BYTE * (uint64_t)(p.at - charged), p.place);
      charged = p.at;
      p.price = 0;
    }
  }
}

/* ---- parsing ---- */

typedef struct feed {
  const char *at, *end;
  int line; /* of the piece that the parser has */
  bool begun;
} feed;

/* Hands the text over line by line, long lines in pieces. */
static const char *read_piece(lua_State *lua, void *context, size_t *size) {
  feed *from = context;
  enum { MAX_PIECE = 256 };
  *size = 0;
  if (from->at == from->end) {
    return NULL;
  }
  pccl_sandbox_check_time(lua);
  const char *piece = from->at;
  from->line += from->begun && piece[-1] == '\n';
  from->begun = true;
  size_t rest = (size_t)(from->end - piece), max = rest < MAX_PIECE ? rest : MAX_PIECE;
  const char *newline = memchr(piece, '\n', max);
  *size = newline != NULL ? (size_t)(newline - piece) + 1 : max;
  from->at = piece + *size;
  return piece;
}

bool pccl_load_text(lua_State *lua, const char *name, const char *text, size_t length) {
  if (length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) { /* a byte-order mark */
    text += 3;
    length -= 3;
  }
  if (length > 0 && text[0] == '#') { /* a line for the shell; its end stays, so that line numbers hold */
    const char *end = memchr(text, '\n', length);
    length = end != NULL ? length - (size_t)(end - text) : 0;
    text = end != NULL ? end : text;
  }
  bool built_in = name[0] == '=';
  if (!built_in) {
    price_text(lua, name, text, length, 1);
  }
  feed from = {.at = text, .end = text + length, .line = 1};
  lua_pushfstring(lua, built_in ? "%s" : "@%s", name);
  int status = lua_load(lua, read_piece, &from, lua_tostring(lua, -1), "t");
  lua_remove(lua, -2);
  pccl_sandbox_pass_end(lua);
  /* "C stack overflow" comes without a place. */
  if (status != LUA_OK && lua_type(lua, -1) == LUA_TSTRING && strchr(lua_tostring(lua, -1), ':') == NULL) {
    lua_pushfstring(lua, "%s:%d: %s (blocks, brackets and operators are nested too deeply; Lua takes about 190)", name,
                    from.line, lua_tostring(lua, -1));
    lua_remove(lua, -2);
  }
  return status == LUA_OK;
}
