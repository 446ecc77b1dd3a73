/* Reading hwloc's XML: <object>s within one another, <info>s in them, and <distances2>, matrices of links. What
 * is taken from them differs little between versions 1, 2 and 3. */
#include "topology/hwloc_xml.h"

#include <expat.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"

enum { MAX_DEPTH = 128, MAX_OBJECTS = 1 << 20, MAX_MATRIX = 4096 };

typedef struct reader {
  const char *file;
  XML_Parser parser;
  pccl_hwloc m;
  int32_t open; /* the object being read; -1: none */
  int depth, object_depth[MAX_DEPTH];
  pccl_map by_gp;            /* gp_index -> object */
  pccl_hwloc_matrix *matrix; /* being read; NULL: none, or one that is skipped */
  long nbobjs;               /* how many objects the matrix declares */
  enum { TEXT_NONE, TEXT_INDEXES, TEXT_VALUES } in_text;
  pccl_text text;
  polyccl_result result;
} reader;

static void stop_parser(reader *r, polyccl_result result) {
  if (r->result == POLYCCL_SUCCESS) {
    r->result = pccl_prefix(result, "%s:%lu: ", r->file, XML_GetCurrentLineNumber(r->parser));
    XML_StopParser(r->parser, XML_FALSE);
  }
}

static void refuse_document(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse_document(reader *r, const char *format, ...) {
  char message[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  stop_parser(r, pccl_fail(POLYCCL_ERROR_INVALID, "%s", message));
}

static const char *find_attribute(const char **attributes, const char *name) {
  for (; attributes[0] != NULL; attributes += 2) {
    if (strcmp(attributes[0], name) == 0) {
      return attributes[1];
    }
  }
  return "";
}

/* Reads digits with a point, whatever the locale; 0 where the text is no such number or is out of range. */
static double parse_decimal(const char *text) {
  double value = 0, unit = 1;
  for (; *text >= '0' && *text <= '9'; text++) {
    value = value * 10 + (*text - '0');
  }
  for (text += *text == '.'; *text >= '0' && *text <= '9'; text++) {
    unit /= 10;
    value += unit * (*text - '0');
  }
  return value < PCCL_MIN_BANDWIDTH || value > PCCL_MAX_BANDWIDTH ? 0 : value;
}

/* ---- objects ---- */

static pccl_hwloc_type object_type(const char *name) {
  static const struct {
    const char *name;
    pccl_hwloc_type type;
  } types[] = {{"Package", PCCL_HWLOC_PACKAGE}, {"Socket", PCCL_HWLOC_PACKAGE}, {"Core", PCCL_HWLOC_CORE},
               {"PU", PCCL_HWLOC_PU},           {"Bridge", PCCL_HWLOC_BRIDGE},  {"PCIDev", PCCL_HWLOC_PCI},
               {"OSDev", PCCL_HWLOC_OSDEV}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strcmp(types[i].name, name) == 0) {
      return types[i].type;
    }
  }
  return PCCL_HWLOC_OTHER;
}

/* "0302 [10de:1db8] [10de:131d] a1 00" and "0000:34:00.0". */
static void read_pci(reader *r, const char **attributes, pccl_hwloc_obj *obj) {
  unsigned domain, bus, device, function, class_id, vendor, device_id;
  const char *type = find_attribute(attributes, "pci_type"), *busid = find_attribute(attributes, "pci_busid");
  if (sscanf(busid, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4 ||
      sscanf(type, "%4x [%4x:%4x]", &class_id, &vendor, &device_id) != 3) {
    refuse_document(r, "pci_busid=\"%.40s\" and pci_type=\"%.40s\" must be the bus id and the type of a PCI device",
                    busid, type);
    return;
  }
  obj->bus = ((int64_t)domain << 20) + (int64_t)(bus << 8 | device << 3 | function);
  obj->class_id = (int)class_id;
  obj->vendor = (int)vendor;
  obj->device_id = (int)device_id;
  obj->link = parse_decimal(find_attribute(attributes, "pci_link_speed"));
}

/* The type of a system's device is a number; from version 3 of hwloc on it is a set of bits. */
static bool is_rdma(const char *type) {
  enum { OPENFABRICS = 3, OPENFABRICS_BIT = 32 };
  int number = atoi(type);
  return number == OPENFABRICS || (number & OPENFABRICS_BIT) != 0;
}

/* hwloc's number of an object. UINT64_MAX is no key of a map. */
static uint64_t gp_key(const char *text) {
  uint64_t number = strtoull(text, NULL, 10);
  return number < UINT64_MAX ? number : 0;
}

static void link_object(reader *r, int32_t index) {
  pccl_hwloc_obj *parent = r->open >= 0 ? &r->m.objs.data[r->open] : NULL;
  if (parent != NULL) {
    *(parent->last_child >= 0 ? &r->m.objs.data[parent->last_child].next : &parent->first_child) = index;
    parent->last_child = index;
  }
  r->open = index;
}

static void start_object(reader *r, const char **attributes) {
  pccl_hwloc_obj obj = {.type = object_type(find_attribute(attributes, "type")),
                        .parent = r->open,
                        .first_child = -1,
                        .last_child = -1,
                        .next = -1,
                        .number = -1,
                        .device = -1};
  obj.host_bridge = obj.type == PCCL_HWLOC_BRIDGE && strncmp(find_attribute(attributes, "bridge_type"), "0-", 2) == 0;
  obj.nvswitch = strcmp(find_attribute(attributes, "subtype"), "NVSwitch") == 0;
  if (obj.type == PCCL_HWLOC_PCI || (obj.type == PCCL_HWLOC_BRIDGE && !obj.host_bridge)) {
    read_pci(r, attributes, &obj);
  } else if (obj.type == PCCL_HWLOC_OSDEV) {
    obj.rdma = is_rdma(find_attribute(attributes, "osdev_type"));
  } else if (obj.type == PCCL_HWLOC_PACKAGE) {
    obj.number = r->m.packages++;
  } else if (obj.type == PCCL_HWLOC_CORE) {
    obj.number = r->m.cores++;
  } else if (obj.type == PCCL_HWLOC_PU) {
    obj.number = r->m.pus++;
  }
  if (r->m.objs.len >= MAX_OBJECTS) {
    refuse_document(r, "the file has more than %d objects", MAX_OBJECTS);
  }
  const char *gp = find_attribute(attributes, "gp_index");
  int32_t index = (int32_t)r->m.objs.len;
  bool kept = gp[0] == '\0' || pccl_map_put(&r->by_gp, gp_key(gp), (uint64_t)index, NULL) != NULL;
  if (!kept || !pccl_vec_push(&r->m.objs, obj)) {
    stop_parser(r, pccl_no_memory("a topology"));
    return;
  }
  link_object(r, index);
}

/* The name of a product comes from the driver or from the list of PCI ids; that of the driver wins. */
static void start_info(reader *r, const char **attributes) {
  bool driver = strcmp(find_attribute(attributes, "name"), "GPUModel") == 0;
  if (r->open < 0 || (!driver && strcmp(find_attribute(attributes, "name"), "PCIDevice") != 0)) {
    return;
  }
  const pccl_hwloc_product *product = pccl_hwloc_find_product(find_attribute(attributes, "value"));
  pccl_hwloc_obj *obj = &r->m.objs.data[r->open];
  if (obj->type == PCCL_HWLOC_OSDEV && obj->parent >= 0) {
    obj = &r->m.objs.data[obj->parent];
  }
  if (product != NULL && (driver || obj->product == NULL)) {
    obj->product = product;
  }
}

/* ---- matrices ---- */

static void start_matrix(reader *r, const char **attributes) {
  static const char *const names[PCCL_HWLOC_LINKS] = {"NVLinkBandwidth", "XGMIBandwidth", "XGMIHops"};
  const char *name = find_attribute(attributes, "name");
  r->matrix = NULL;
  for (int i = 0; i < PCCL_HWLOC_LINKS; i++) {
    if (strcmp(name, names[i]) == 0) {
      r->matrix = &r->m.matrix[i];
    }
  }
  r->nbobjs = atol(find_attribute(attributes, "nbobjs"));
  if (r->matrix != NULL && (r->nbobjs < 1 || r->nbobjs > MAX_MATRIX || r->matrix->objs.len > 0)) {
    refuse_document(r,
                    r->matrix->objs.len > 0 ? "the file has a second matrix %s" : "nbobjs of %s must be within 1 .. %d",
                    name, MAX_MATRIX);
  }
}

/* "OSDev:332 OSDev:333" or "332 333". */
static void read_index(reader *r, const char *word) {
  const char *number = strchr(word, ':') != NULL ? strchr(word, ':') + 1 : word;
  const uint64_t *obj = pccl_map_get(&r->by_gp, gp_key(number));
  if (!pccl_vec_push(&r->matrix->objs, obj != NULL ? (int32_t)*obj : -1)) {
    stop_parser(r, pccl_no_memory("a topology"));
  }
}

static void read_value(reader *r, const char *word) {
  if (!pccl_vec_push(&r->matrix->values, strtoull(word, NULL, 10))) {
    stop_parser(r, pccl_no_memory("a topology"));
  }
}

static void end_text(reader *r) {
  char *rest = NULL;
  bool failed = r->text.failed;
  for (char *word = r->text.data != NULL && !failed ? strtok_r(r->text.data, " \t\r\n", &rest) : NULL;
       word != NULL && r->result == POLYCCL_SUCCESS; word = strtok_r(NULL, " \t\r\n", &rest)) {
    (r->in_text == TEXT_INDEXES ? read_index : read_value)(r, word);
  }
  pccl_text_free(&r->text);
  r->in_text = TEXT_NONE;
  if (failed) {
    stop_parser(r, pccl_no_memory("a topology"));
  }
}

static void end_matrix(reader *r) {
  size_t n = (size_t)r->nbobjs;
  if (r->matrix != NULL && (r->matrix->objs.len != n || r->matrix->values.len != n * n)) {
    refuse_document(r, "a matrix of %zu objects has %zu indexes and %zu values", n, r->matrix->objs.len,
                    r->matrix->values.len);
  }
  r->matrix = NULL;
}

/* ---- the document ---- */

static bool is_matrix(const char *name) { return strncmp(name, "distances2", 10) == 0; }

static void XMLCALL start_element(void *user, const XML_Char *name, const XML_Char **attributes) {
  reader *r = user;
  if (r->result != POLYCCL_SUCCESS) {
    return;
  }
  if (r->depth == MAX_DEPTH) {
    refuse_document(r, "elements are nested deeper than %d", MAX_DEPTH);
    return;
  }
  r->object_depth[r->depth++] = -2;
  if (strcmp(name, "object") == 0) {
    r->object_depth[r->depth - 1] = r->open;
    start_object(r, attributes);
  } else if (strcmp(name, "info") == 0) {
    start_info(r, attributes);
  } else if (is_matrix(name)) {
    start_matrix(r, attributes);
  } else if (r->matrix != NULL && (strcmp(name, "indexes") == 0 || strcmp(name, "u64values") == 0)) {
    r->in_text = name[0] == 'i' ? TEXT_INDEXES : TEXT_VALUES;
  }
}

static void XMLCALL end_element(void *user, const XML_Char *name) {
  reader *r = user;
  if (r->result != POLYCCL_SUCCESS) {
    return;
  }
  int open = r->object_depth[--r->depth];
  r->open = open > -2 ? open : r->open;
  if (r->in_text != TEXT_NONE) {
    end_text(r);
  } else if (is_matrix(name)) {
    end_matrix(r);
  }
}

static void XMLCALL collect_characters(void *user, const XML_Char *text, int length) {
  reader *r = user;
  if (r->in_text != TEXT_NONE) {
    pccl_text_bytes(&r->text, text, (size_t)length);
  }
}

/* hwloc's files name a document type of their own, which is harmless while it defines nothing. */
static void XMLCALL start_doctype(void *user, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                                  int has_subset) {
  (void)name;
  (void)public;
  if (has_subset || system == NULL || strncmp(system, "hwloc", 5) != 0) {
    refuse_document(user, "the document type must be hwloc's own");
  }
}

static polyccl_result parse_xml(reader *r, const char *text, size_t length) {
  r->parser = XML_ParserCreate(NULL);
  if (r->parser == NULL) {
    return pccl_no_memory("a topology");
  }
  XML_SetUserData(r->parser, r);
  XML_SetElementHandler(r->parser, start_element, end_element);
  XML_SetCharacterDataHandler(r->parser, collect_characters);
  XML_SetStartDoctypeDeclHandler(r->parser, start_doctype);
  if (XML_Parse(r->parser, text, (int)length, XML_TRUE) == XML_STATUS_ERROR && r->result == POLYCCL_SUCCESS) {
    refuse_document(r, "the XML is not well-formed: %s", XML_ErrorString(XML_GetErrorCode(r->parser)));
  }
  XML_ParserFree(r->parser);
  return r->result;
}

static polyccl_result build_machine(reader *r, polyccl_topology **topology) {
  const char *slash = strrchr(r->file, '/');
  pccl_builder builder;
  pccl_text source = {0};
  PCCL_TRY(pccl_builder_start(&builder, slash != NULL ? slash + 1 : r->file, ""));
  r->m.b = &builder;
  polyccl_result result = pccl_hwloc_machine(&r->m, &source);
  if (result == POLYCCL_SUCCESS && source.failed) {
    result = pccl_no_memory("a topology");
  }
  if (result != POLYCCL_SUCCESS) {
    pccl_builder_abandon(&builder);
  } else {
    free(builder.topology->source);
    builder.topology->source = source.data;
    source.data = NULL;
    result = pccl_builder_finish(&builder, topology);
  }
  pccl_text_free(&source);
  return result == POLYCCL_SUCCESS ? result : pccl_prefix(result, "%s: ", r->file);
}

polyccl_result pccl_topology_read_hwloc(const char *name, const char *text, size_t length,
                                        polyccl_topology **topology) {
  reader r = {.file = name, .m = {.nvswitch = -1}, .open = -1};
  polyccl_result result =
      length <= INT_MAX ? parse_xml(&r, text, length)
                        : pccl_fail(POLYCCL_ERROR_LIMIT, "%s: the file has %zu bytes, too many to read", name, length);
  if (result == POLYCCL_SUCCESS) {
    result = build_machine(&r, topology);
  }
  for (int i = 0; i < PCCL_HWLOC_LINKS; i++) {
    pccl_vec_free(&r.m.matrix[i].objs);
    pccl_vec_free(&r.m.matrix[i].values);
  }
  pccl_vec_free(&r.m.objs);
  pccl_vec_free(&r.m.devices);
  pccl_map_free(&r.by_gp);
  pccl_text_free(&r.text);
  return result;
}
