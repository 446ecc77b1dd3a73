/* Parses NCCL's XML into a list of elements. */
#include <expat.h>
#include <string.h>

#include "base/error.h"
#include "topology/nccl_xml.h"

enum { MAX_DEPTH = 64, MAX_ELEMENTS = 1 << 20, MAX_VALUE = 255 };

typedef struct parser {
  pccl_nccl *n;
  XML_Parser xml;
  int32_t open[MAX_DEPTH];
  int depth;
  size_t skipped; /* open elements inside one that is not known */
} parser;

static void stop_parsing(parser *p) { XML_StopParser(p->xml, XML_FALSE); }

static void refuse_element(parser *p, polyccl_result result) {
  p->n->result = pccl_prefix(result, "%s:%lu: ", p->n->file, XML_GetCurrentLineNumber(p->xml));
  stop_parsing(p);
}

/* Values are put into names and messages, so a byte that is not printable ASCII becomes "?". */
static bool keep_text(pccl_nccl *n, const char *text, size_t *at) {
  size_t length = strnlen(text, MAX_VALUE);
  if (!pccl_vec_reserve(&n->text, length + 1)) {
    return false;
  }
  *at = n->text.len;
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    n->text.data[n->text.len++] = c >= 0x20 && c < 0x7f ? (char)c : '?';
  }
  n->text.data[n->text.len++] = '\0';
  return true;
}

static bool keep_attributes(pccl_nccl *n, pccl_nccl_element *e, const char **attributes) {
  e->attribute = n->attributes.len;
  for (; attributes[0] != NULL; attributes += 2) {
    pccl_nccl_attribute kept;
    if (!keep_text(n, attributes[0], &kept.name) || !keep_text(n, attributes[1], &kept.value) ||
        !pccl_vec_push(&n->attributes, kept)) {
      return false;
    }
  }
  e->attributes = n->attributes.len - e->attribute;
  return true;
}

/* -1: the element is skipped with all that is in it. */
static int element_kind(const char *name) {
  static const struct {
    const char *name;
    pccl_nccl_kind kind;
  } kinds[] = {{"system", PCCL_NCCL_SYSTEM}, {"cpu", PCCL_NCCL_CPU},       {"pci", PCCL_NCCL_PCI},
               {"gpu", PCCL_NCCL_GPU},       {"nvlink", PCCL_NCCL_NVLINK}, {"xgmi", PCCL_NCCL_XGMI},
               {"c2c", PCCL_NCCL_C2C},       {"nic", PCCL_NCCL_NIC},       {"net", PCCL_NCCL_NET}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (strcmp(kinds[i].name, name) == 0) {
      return (int)kinds[i].kind;
    }
  }
  return -1;
}

/* What is wrong with the place of an element; NULL: nothing. */
static const char *misplaced(const pccl_nccl *n, pccl_nccl_kind kind, int32_t parent) {
  bool in_gpu = parent >= 0 && n->elements.data[parent].kind == PCCL_NCCL_GPU;
  switch (kind) {
    case PCCL_NCCL_GPU:
      return parent >= 0 && n->elements.data[parent].kind == PCCL_NCCL_PCI
                 ? NULL
                 : "a gpu element must stand in a pci element";
    case PCCL_NCCL_NVLINK: return in_gpu ? NULL : "an nvlink element must stand in a gpu element";
    case PCCL_NCCL_XGMI: return in_gpu ? NULL : "an xgmi element must stand in a gpu element";
    case PCCL_NCCL_C2C: return in_gpu ? NULL : "a c2c element must stand in a gpu element";
    default: return NULL;
  }
}

static void append_element(parser *p, pccl_nccl_kind kind, const char **attributes) {
  pccl_nccl *n = p->n;
  int32_t parent = p->depth > 0 ? p->open[p->depth - 1] : -1, index = (int32_t)n->elements.len;
  pccl_nccl_element e = {.kind = kind, .parent = parent, .first_child = -1, .last_child = -1, .next = -1};
  e.host = e.node = -1;
  e.line = XML_GetCurrentLineNumber(p->xml);
  const char *wrong = misplaced(n, kind, parent);
  if (wrong != NULL) {
    refuse_element(p, pccl_fail(POLYCCL_ERROR_INVALID, "%s", wrong));
    return;
  }
  if (n->elements.len >= MAX_ELEMENTS) {
    refuse_element(p, pccl_fail(POLYCCL_ERROR_LIMIT, "the file has more than %d elements", MAX_ELEMENTS));
    return;
  }
  if (!keep_attributes(n, &e, attributes) || !pccl_vec_push(&n->elements, e)) {
    refuse_element(p, pccl_no_memory("the elements of a topology"));
    return;
  }
  if (parent >= 0) {
    pccl_nccl_element *above = &n->elements.data[parent];
    if (above->last_child >= 0) {
      n->elements.data[above->last_child].next = index;
    } else {
      above->first_child = index;
    }
    above->last_child = index;
    above->bridge = above->bridge || (kind == PCCL_NCCL_PCI && above->kind == PCCL_NCCL_PCI);
    above->nets += kind == PCCL_NCCL_NET;
  }
  p->open[p->depth++] = index;
}

static void XMLCALL start_element(void *user, const char *name, const char **attributes) {
  parser *p = user;
  if (p->skipped > 0 || p->n->result != POLYCCL_SUCCESS) {
    p->skipped++;
    return;
  }
  if (p->depth >= MAX_DEPTH) {
    refuse_element(p, pccl_fail(POLYCCL_ERROR_INVALID, "elements are nested deeper than %d", MAX_DEPTH));
    return;
  }
  if ((p->depth == 0) != (strcmp(name, "system") == 0)) {
    refuse_element(p, pccl_fail(POLYCCL_ERROR_INVALID,
                                "<%.60s> stands where the one <system> element of a topology must stand", name));
    return;
  }
  int kind = element_kind(name);
  if (kind < 0) {
    p->skipped = 1;
    return;
  }
  append_element(p, (pccl_nccl_kind)kind, attributes);
}

static void XMLCALL end_element(void *user, const char *name) {
  (void)name;
  parser *p = user;
  if (p->skipped > 0) {
    p->skipped--;
  } else if (p->depth > 0) {
    p->depth--;
  }
}

static void XMLCALL refuse_entity(void *user, const char *name, int parameter, const char *value, int length,
                                  const char *base, const char *system, const char *public, const char *notation) {
  (void)parameter, (void)value, (void)length, (void)base, (void)system, (void)public, (void)notation;
  parser *p = user;
  if (p->n->result == POLYCCL_SUCCESS) {
    refuse_element(p, pccl_fail(POLYCCL_ERROR_INVALID, "a topology must not define entities (\"%.60s\")", name));
  }
}

static polyccl_result parse_pieces(parser *p, const char *text, size_t length) {
  enum { PIECE = 1 << 20 };
  for (size_t at = 0; at < length || length == 0; at += PIECE) {
    size_t piece = length - at < PIECE ? length - at : PIECE;
    enum XML_Status status = XML_Parse(p->xml, text + at, (int)piece, at + piece == length);
    if (p->n->result != POLYCCL_SUCCESS) {
      return p->n->result;
    }
    if (status != XML_STATUS_OK) {
      return pccl_fail(POLYCCL_ERROR_INVALID, "%s:%lu:%lu: %s", p->n->file, XML_GetCurrentLineNumber(p->xml),
                       XML_GetCurrentColumnNumber(p->xml) + 1, XML_ErrorString(XML_GetErrorCode(p->xml)));
    }
  }
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_nccl_parse(pccl_nccl *n, const char *text, size_t length) {
  parser p = {.n = n, .xml = XML_ParserCreate(NULL)};
  if (p.xml == NULL) {
    return pccl_no_memory("reading a topology");
  }
  XML_SetUserData(p.xml, &p);
  XML_SetElementHandler(p.xml, start_element, end_element);
  XML_SetEntityDeclHandler(p.xml, refuse_entity);
  polyccl_result result = parse_pieces(&p, text, length);
  XML_ParserFree(p.xml);
  return result;
}
