/* Collects MSCCL XML with expat. It is liberal in names and defaults (docs/formats.md) and strict in numbers and
 * structure. It refuses document types, and with them every entity. Its memory grows with the elements read. */
#include "plan/xml.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>

#include <polyccl/program.h>

#include "base/error.h"
#include "plan/formats.h"
#include "plan/plan.h"

typedef enum level { IN_FILE, IN_ALGO, IN_GPU, IN_TB, IN_STEP } level;

typedef struct scanner {
  XML_Parser parser;
  pccl_xml *xml;
  level level;
  polyccl_result result; /* the first error */
} scanner;

/* An element's attributes as expat gives them, and its place for errors. */
typedef struct element {
  const char *name;
  const char **attributes;
  polyccl_location at;
} element;

static int32_t current_line(const scanner *s) { return (int32_t)XML_GetCurrentLineNumber(s->parser); }

static polyccl_result fail_attribute(const element *e, const char *attribute, const char *value, const char *wanted) {
  return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at, "<%.32s> %s=\"%.40s\": expected %s", e->name, attribute, value,
                      wanted);
}

/* The value under either name, or NULL if there is none. */
static const char *find_attribute(const element *e, const char *name, const char *other) {
  for (const char **a = e->attributes; *a != NULL; a += 2) {
    if (strcmp(a[0], name) == 0 || (other != NULL && strcmp(a[0], other) == 0)) {
      return a[1];
    }
  }
  return NULL;
}

static bool parse_attribute_number(const char *text, uint64_t *number) {
  uint64_t n = 0;
  if (*text == '\0') {
    return false;
  }
  for (; *text != '\0'; text++) {
    if (*text < '0' || *text > '9' || n > INT64_MAX / 10) {
      return false;
    }
    n = n * 10 + (uint64_t)(*text - '0');
  }
  *number = n;
  return n <= INT64_MAX;
}

static polyccl_result read_size_attribute(const element *e, const char *name, const char *other, uint64_t *value) {
  const char *text = find_attribute(e, name, other);
  if (text != NULL && !parse_attribute_number(text, value)) {
    return fail_attribute(e, name, text, "a number of bytes");
  }
  return POLYCCL_SUCCESS;
}

/* Reads a number in [min, max]; min is 0, 1 or -1. Leaves *value alone if the attribute is absent. */
static polyccl_result read_int_attribute(const element *e, const char *name, const char *other, int32_t min,
                                         int32_t max, int32_t *value) {
  const char *text = find_attribute(e, name, other);
  uint64_t number;
  if (text == NULL) {
    return POLYCCL_SUCCESS;
  }
  if (min < 0 && strcmp(text, "-1") == 0) {
    *value = -1;
    return POLYCCL_SUCCESS;
  }
  if (!parse_attribute_number(text, &number) || number > (uint64_t)max || (min > 0 && number < (uint64_t)min)) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a number from %d to %d", min, max);
    return fail_attribute(e, name, text, wanted);
  }
  *value = (int32_t)number;
  return POLYCCL_SUCCESS;
}

static polyccl_result read_flag_attribute(const element *e, const char *name, int32_t *value) {
  return read_int_attribute(e, name, NULL, 0, 1, value);
}

/* ---- <algo> ---- */

static polyccl_result scan_collective(const element *e, pccl_xml *xml) {
  const char *coll = find_attribute(e, "coll", NULL);
  if (coll == NULL) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at, "<algo> has no coll attribute");
  }
  polyccl_result result = polyccl_collective_parse(coll, &xml->collective);
  const char *protocol = find_attribute(e, "proto", "protocol");
  if (result == POLYCCL_SUCCESS && protocol != NULL) {
    result = polyccl_protocol_parse(protocol, &xml->protocol);
  }
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s:%d: ", e->at.file, e->at.line);
}

/* An extension of PolyCCL: names with blanks between them. */
static polyccl_result scan_redops(const element *e, pccl_xml *xml) {
  const char *text = find_attribute(e, "redops", NULL);
  while (text != NULL && *text != '\0') {
    char name[16];
    polyccl_redop op;
    size_t length = strcspn(text, " ");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
    polyccl_result result = polyccl_redop_parse(name, &op);
    if (result != POLYCCL_SUCCESS) {
      return pccl_prefix(result, "%s:%d: ", e->at.file, e->at.line);
    }
    xml->redops |= 1u << op;
    text += length;
    text += strspn(text, " ");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result scan_algo(scanner *s, const element *e) {
  pccl_xml *xml = s->xml;
  xml->seen = true;
  xml->line = e->at.line;
  xml->ranks = xml->chunks_per_loop = xml->inplace = xml->out_of_place = PCCL_XML_ABSENT;
  PCCL_TRY(scan_collective(e, xml));
  const char *name = find_attribute(e, "name", NULL);
  xml->name = pccl_strdup(name != NULL ? name : polyccl_collective_name(xml->collective));
  if (xml->name == NULL) {
    return pccl_no_memory("a plan");
  }
  PCCL_TRY(read_int_attribute(e, "ngpus", NULL, 1, POLYCCL_MAX_RANKS, &xml->ranks));
  PCCL_TRY(read_int_attribute(e, "nchunksperloop", NULL, 1, POLYCCL_MAX_CHUNKS, &xml->chunks_per_loop));
  PCCL_TRY(read_flag_attribute(e, "inplace", &xml->inplace));
  PCCL_TRY(read_flag_attribute(e, "outofplace", &xml->out_of_place));
  PCCL_TRY(read_int_attribute(e, "root", NULL, 0, POLYCCL_MAX_RANKS - 1, &xml->root));
  PCCL_TRY(read_int_attribute(e, "peer", NULL, 0, POLYCCL_MAX_RANKS - 1, &xml->peer));
  PCCL_TRY(scan_redops(e, xml));
  PCCL_TRY(read_size_attribute(e, "minBytes", "minbytes", &xml->min_bytes));
  PCCL_TRY(read_size_attribute(e, "maxBytes", "maxbytes", &xml->max_bytes));
  return POLYCCL_SUCCESS;
}

/* ---- <gpu>, <copy>, <tb> ---- */

static polyccl_result scan_gpu(scanner *s, const element *e) {
  pccl_xml *xml = s->xml;
  pccl_xml_gpu gpu = {.id = (int32_t)xml->gpu.len, .tb = (int32_t)xml->tb.len, .line = e->at.line};
  PCCL_TRY(read_int_attribute(e, "id", NULL, 0, POLYCCL_MAX_RANKS - 1, &gpu.id));
  PCCL_TRY(read_int_attribute(e, "i_chunks", NULL, 0, POLYCCL_MAX_CHUNKS, &gpu.inputs));
  PCCL_TRY(read_int_attribute(e, "o_chunks", NULL, 0, POLYCCL_MAX_CHUNKS, &gpu.outputs));
  PCCL_TRY(read_int_attribute(e, "s_chunks", NULL, 0, POLYCCL_MAX_CHUNKS, &gpu.scratch));
  return pccl_vec_push(&xml->gpu, gpu) ? POLYCCL_SUCCESS : pccl_no_memory("a plan");
}

static polyccl_result scan_copy(scanner *s, const element *e) {
  pccl_xml *xml = s->xml;
  pccl_xml_copy copy = {.gpu = (int32_t)xml->gpu.len - 1, .input = -1, .output = -1, .line = e->at.line};
  PCCL_TRY(read_int_attribute(e, "i_off", NULL, 0, POLYCCL_MAX_CHUNKS - 1, &copy.input));
  PCCL_TRY(read_int_attribute(e, "o_off", NULL, 0, POLYCCL_MAX_CHUNKS - 1, &copy.output));
  if (copy.input < 0 || copy.output < 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at, "<copy> needs i_off and o_off");
  }
  return pccl_vec_push(&xml->copy, copy) ? POLYCCL_SUCCESS : pccl_no_memory("a plan");
}

static polyccl_result scan_tb(scanner *s, const element *e) {
  pccl_xml *xml = s->xml;
  pccl_xml_gpu *gpu = &xml->gpu.data[xml->gpu.len - 1];
  pccl_xml_tb tb = {.gpu = (int32_t)xml->gpu.len - 1,
                    .id = gpu->tbs,
                    .send = -1,
                    .recv = -1,
                    .channel = 0,
                    .step = (int32_t)xml->step.len,
                    .line = e->at.line};
  PCCL_TRY(read_int_attribute(e, "id", NULL, 0, INT32_MAX, &tb.id));
  PCCL_TRY(read_int_attribute(e, "send", NULL, -1, POLYCCL_MAX_RANKS - 1, &tb.send));
  PCCL_TRY(read_int_attribute(e, "recv", NULL, -1, POLYCCL_MAX_RANKS - 1, &tb.recv));
  PCCL_TRY(read_int_attribute(e, "chan", "channel", -1, PCCL_PLAN_MAX_CHANNEL, &tb.channel));
  gpu->tbs++;
  return pccl_vec_push(&xml->tb, tb) ? POLYCCL_SUCCESS : pccl_no_memory("a plan");
}

/* ---- <step> ---- */

static polyccl_result scan_type(const element *e, uint8_t *op) {
  const char *type = find_attribute(e, "type", NULL);
  for (uint8_t i = 0; type != NULL && i < POLYCCL_STEP_OP_COUNT; i++) {
    if (strcmp(type, pccl_ops[i].xml) == 0) {
      *op = i;
      return POLYCCL_SUCCESS;
    }
  }
  if (type == NULL) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at, "<%.32s> has no type", e->name);
  }
  char words[128];
  size_t length = 0;
  for (int i = 0; i < POLYCCL_STEP_OP_COUNT && length < sizeof words; i++) {
    const char *separator = i == 0 ? "" : i + 1 < POLYCCL_STEP_OP_COUNT ? ", " : " or ";
    length += (size_t)snprintf(words + length, sizeof words - length, "%s%s", separator, pccl_ops[i].xml);
  }
  return fail_attribute(e, "type", type, words);
}

/* Reads one side of a step; buf and off stand for the only side of a step that has one. */
static polyccl_result scan_operand(const element *e, const char *buffer_name, const char *offset_name, uint8_t *buffer,
                                   int32_t *offset) {
  static const char *const letters[] = {
      [POLYCCL_BUF_INPUT] = "i", [POLYCCL_BUF_OUTPUT] = "o", [POLYCCL_BUF_SCRATCH] = "s"};
  const char *text = find_attribute(e, buffer_name, "buf");
  *offset = -1;
  PCCL_TRY(read_int_attribute(e, offset_name, "off", -1, POLYCCL_MAX_CHUNKS - 1, offset));
  if (text == NULL || *offset < 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at, "<%.32s> of this type needs %s and %s", e->name, buffer_name,
                        offset_name);
  }
  for (uint8_t b = 0; b < sizeof letters / sizeof letters[0]; b++) {
    if (strcmp(text, letters[b]) == 0) {
      *buffer = b;
      return POLYCCL_SUCCESS;
    }
  }
  return fail_attribute(e, buffer_name, text, "i, o or s");
}

static polyccl_result scan_step(scanner *s, const element *e) {
  pccl_xml *xml = s->xml;
  pccl_xml_tb *tb = &xml->tb.data[xml->tb.len - 1];
  pccl_xml_step step = {.count = 1, .dep_tb = -1, .dep_step = -1, .line = e->at.line};
  int32_t number = tb->steps;
  PCCL_TRY(read_int_attribute(e, "s", "step", 0, INT32_MAX, &number));
  if (number != tb->steps) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at, "found step %d, expected step %d", number, tb->steps);
  }
  PCCL_TRY(scan_type(e, &step.op));
  const pccl_op_traits *uses = &pccl_ops[step.op];
  if (uses->reads_src) {
    PCCL_TRY(scan_operand(e, "srcbuf", "srcoff", &step.src_buf, &step.src));
  }
  if (uses->writes_dst) {
    PCCL_TRY(scan_operand(e, "dstbuf", "dstoff", &step.dst_buf, &step.dst));
  }
  if (pccl_op_moves(step.op)) {
    PCCL_TRY(read_int_attribute(e, "cnt", "count", 0, POLYCCL_MAX_CHUNKS, &step.count));
  } else {
    step.count = 0;
  }
  PCCL_TRY(read_int_attribute(e, "depid", NULL, -1, INT32_MAX, &step.dep_tb));
  PCCL_TRY(read_int_attribute(e, "deps", NULL, -1, INT32_MAX, &step.dep_step));
  if ((step.dep_tb < 0) != (step.dep_step < 0)) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at, "depid=\"%d\" deps=\"%d\": both or neither must be given",
                        step.dep_tb, step.dep_step);
  }
  if ((uses->sends && tb->send < 0) || (uses->receives && tb->recv < 0)) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, e->at,
                        "type \"%s\" needs a %s peer, which the thread block does not have", uses->xml,
                        uses->sends && tb->send < 0 ? "send" : "recv");
  }
  tb->steps++;
  return pccl_vec_push(&xml->step, step) ? POLYCCL_SUCCESS : pccl_no_memory("a plan");
}

/* ---- the document ---- */

typedef struct element_kind {
  const char *name, *other;
  level within, opens;
  polyccl_result (*scan)(scanner *s, const element *e);
} element_kind;

static const element_kind kinds[] = {
    {"algo", NULL, IN_FILE, IN_ALGO, scan_algo}, {"gpu", NULL, IN_ALGO, IN_GPU, scan_gpu},
    {"copy", NULL, IN_GPU, IN_STEP, scan_copy},  {"tb", NULL, IN_GPU, IN_TB, scan_tb},
    {"step", "op", IN_TB, IN_STEP, scan_step},
};

static void stop_parser(scanner *s, polyccl_result result) {
  if (s->result == POLYCCL_SUCCESS) {
    s->result = result;
  }
  XML_StopParser(s->parser, XML_FALSE);
}

static void XMLCALL on_element_start(void *data, const XML_Char *name, const XML_Char **attributes) {
  scanner *s = data;
  element e = {name, attributes, {s->xml->file, current_line(s)}};
  if (s->result != POLYCCL_SUCCESS) {
    return;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    const element_kind *kind = &kinds[i];
    if (kind->within == s->level &&
        (strcmp(name, kind->name) == 0 || (kind->other != NULL && strcmp(name, kind->other) == 0))) {
      s->level = kind->opens;
      polyccl_result result = kind->scan(s, &e);
      if (result != POLYCCL_SUCCESS) {
        stop_parser(s, result);
      }
      return;
    }
  }
  static const char *const places[] = {
      [IN_FILE] = "an MSCCL file", [IN_ALGO] = "<algo>", [IN_GPU] = "<gpu>", [IN_TB] = "<tb>", [IN_STEP] = "a step"};
  stop_parser(s, pccl_fail_at(POLYCCL_ERROR_INVALID, e.at, "<%.32s> does not belong in %s", name, places[s->level]));
}

static void XMLCALL on_element_end(void *data, const XML_Char *name) {
  static const level outer[] = {
      [IN_FILE] = IN_FILE, [IN_ALGO] = IN_FILE, [IN_GPU] = IN_ALGO, [IN_TB] = IN_GPU, [IN_STEP] = IN_TB};
  scanner *s = data;
  s->level = strcmp(name, "copy") == 0 ? IN_GPU : outer[s->level];
}

static void XMLCALL on_doctype(void *data, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                               int internal) {
  (void)system;
  (void)public;
  (void)internal;
  scanner *s = data;
  polyccl_location at = {s->xml->file, current_line(s)};
  stop_parser(
      s, pccl_fail_at(POLYCCL_ERROR_INVALID, at, "a document type (<!DOCTYPE %.32s>) is not allowed in a plan", name));
}

/* Only indentation is allowed between elements. */
static void XMLCALL on_text(void *data, const XML_Char *text, int length) {
  scanner *s = data;
  for (int i = 0; i < length && s->result == POLYCCL_SUCCESS; i++) {
    if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0') {
      polyccl_location at = {s->xml->file, current_line(s)};
      stop_parser(s, pccl_fail_at(POLYCCL_ERROR_INVALID, at, "there is text between the elements"));
    }
  }
}

polyccl_result pccl_xml_scan(const char *file, const char *text, size_t length, pccl_xml *xml) {
  scanner s = {.xml = xml, .parser = XML_ParserCreate(NULL)};
  if (s.parser == NULL) {
    return pccl_no_memory("reading XML");
  }
  xml->file = file;
  XML_SetUserData(s.parser, &s);
  XML_SetElementHandler(s.parser, on_element_start, on_element_end);
  XML_SetCharacterDataHandler(s.parser, on_text);
  XML_SetStartDoctypeDeclHandler(s.parser, on_doctype);
  if (XML_Parse(s.parser, text, (int)length, XML_TRUE) != XML_STATUS_OK && s.result == POLYCCL_SUCCESS) {
    polyccl_location at = {file, current_line(&s)};
    s.result =
        pccl_fail_at(POLYCCL_ERROR_INVALID, at, "not well-formed XML: %s", XML_ErrorString(XML_GetErrorCode(s.parser)));
  }
  XML_ParserFree(s.parser);
  return s.result;
}

void pccl_xml_free(pccl_xml *xml) {
  free(xml->name);
  pccl_vec_free(&xml->gpu);
  pccl_vec_free(&xml->tb);
  pccl_vec_free(&xml->step);
  pccl_vec_free(&xml->copy);
}
