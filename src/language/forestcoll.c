/* Reads ForestColl's trees: <Algo nchunkspernode><tree root index nchunks><send src dst path/>... Each tree carries
 * `nchunks` chunks from its root to all other nodes (docs/formats.md). Nodes have names; the natural order of the names
 * gives the ranks. */
#include <expat.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "language/synth.h"

typedef struct tree {
  int32_t root; /* index into names */
  int32_t first, chunks;
  int32_t line;
} tree;

typedef struct reader {
  XML_Parser parser;
  pccl_synth *schedule; /* its hops name nodes by index into names until the end */
  polyccl_result result;
  int depth;
  bool bare;        /* a single <tree> is the document */
  int32_t declared; /* nchunkspernode, 0: not given */
  PCCL_VEC(char *) names;
  PCCL_VEC(tree) trees;
  PCCL_VEC(int32_t) taken; /* by node: chunks that its trees carry so far */
  PCCL_VEC(int32_t) level; /* by node: distance in the tree being read, -1: not reached */
  PCCL_VEC(int32_t) reached;
  pccl_map index; /* hash of a name -> its index */
} reader;

static polyccl_location current_place(const reader *r) {
  return (polyccl_location){r->schedule->file, (int)XML_GetCurrentLineNumber(r->parser)};
}

static const char *find_attribute(const char **attributes, const char *name) {
  for (; *attributes != NULL; attributes += 2) {
    if (strcmp(attributes[0], name) == 0) {
      return attributes[1];
    }
  }
  return NULL;
}

static polyccl_result get_name(const reader *r, const char **attributes, const char *name, const char **value) {
  *value = find_attribute(attributes, name);
  return *value != NULL ? POLYCCL_SUCCESS
                        : pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "the attribute %s is missing", name);
}

static polyccl_result get_int(const reader *r, const char **attributes, const char *name, int32_t *value) {
  const char *text = find_attribute(attributes, name);
  if (text == NULL) {
    return POLYCCL_SUCCESS;
  }
  int32_t number = 0;
  bool right = *text != '\0';
  for (const char *at = text; *at != '\0' && right; at++) {
    right = *at >= '0' && *at <= '9' && number <= POLYCCL_MAX_CHUNKS / 10;
    number = right ? number * 10 + (*at - '0') : 0;
  }
  if (!right || number < 1 || number > POLYCCL_MAX_CHUNKS) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "%s=\"%.40s\": expected a number from 1 to %d", name,
                        text, POLYCCL_MAX_CHUNKS);
  }
  *value = number;
  return POLYCCL_SUCCESS;
}

static uint64_t hash_of(const char *name) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (; *name != '\0'; name++) {
    hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
  }
  return hash >> 1;
}

/* Finds the index of the node, or gives it one. */
static polyccl_result node_of(reader *r, const char *name, int32_t *node) {
  uint64_t key = hash_of(name);
  for (;; key++) {
    uint64_t *found = pccl_map_get(&r->index, key);
    if (found == NULL) {
      break;
    }
    if (strcmp(r->names.data[*found], name) == 0) {
      *node = (int32_t)*found;
      return POLYCCL_SUCCESS;
    }
  }
  if (r->names.len == POLYCCL_MAX_RANKS) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, current_place(r), "the trees have more than %d nodes", POLYCCL_MAX_RANKS);
  }
  char *copy = pccl_strdup(name);
  if (copy == NULL || !pccl_vec_push(&r->names, copy)) {
    free(copy);
    return pccl_no_memory("a forest of trees");
  }
  *node = (int32_t)r->names.len - 1;
  return pccl_map_put(&r->index, key, (uint64_t)*node, NULL) != NULL && pccl_vec_push(&r->taken, 0) &&
                 pccl_vec_push(&r->level, -1)
             ? POLYCCL_SUCCESS
             : pccl_no_memory("a forest of trees");
}

static polyccl_result reach_node(reader *r, int32_t node, int32_t level) {
  r->level.data[node] = level;
  return pccl_vec_push(&r->reached, node) ? POLYCCL_SUCCESS : pccl_no_memory("a forest of trees");
}

static polyccl_result start_tree(reader *r, const char **attributes) {
  tree next = {.chunks = 1, .line = current_place(r).line};
  const char *root;
  PCCL_TRY(get_name(r, attributes, "root", &root));
  PCCL_TRY(get_int(r, attributes, "nchunks", &next.chunks));
  PCCL_TRY(node_of(r, root, &next.root));
  next.first = r->taken.data[next.root];
  if (next.first > POLYCCL_MAX_CHUNKS - next.chunks) {
    return pccl_fail_at(POLYCCL_ERROR_LIMIT, current_place(r), "a root has more than %d chunks", POLYCCL_MAX_CHUNKS);
  }
  r->taken.data[next.root] += next.chunks;
  for (size_t i = 0; i < r->reached.len; i++) {
    r->level.data[r->reached.data[i]] = -1;
  }
  r->reached.len = 0;
  PCCL_TRY(reach_node(r, next.root, 0));
  return pccl_vec_push(&r->trees, next) ? POLYCCL_SUCCESS : pccl_no_memory("a forest of trees");
}

static polyccl_result add_send(reader *r, const char **attributes) {
  const tree *in = &r->trees.data[r->trees.len - 1];
  const char *src, *dst;
  pccl_hop hop = {.root = in->root, .chunk = in->first, .size = in->chunks, .line = current_place(r).line};
  PCCL_TRY(get_name(r, attributes, "src", &src));
  PCCL_TRY(get_name(r, attributes, "dst", &dst));
  PCCL_TRY(node_of(r, src, &hop.src));
  PCCL_TRY(node_of(r, dst, &hop.dst));
  if (r->level.data[hop.src] < 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "%.80s sends before the tree has reached it", src);
  }
  if (r->level.data[hop.dst] >= 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "the tree has reached %.80s already", dst);
  }
  hop.order = r->level.data[hop.src] + 1;
  PCCL_TRY(reach_node(r, hop.dst, hop.order));
  return pccl_vec_push(&r->schedule->hop, hop) ? POLYCCL_SUCCESS : pccl_no_memory("a forest of trees");
}

/* ---- the document ---- */

static polyccl_result start_element(reader *r, const char *name, const char **attributes) {
  int inside = r->depth - (r->bare ? 0 : 1);
  if (r->depth == 0 && strcmp(name, "Algo") == 0) {
    return get_int(r, attributes, "nchunkspernode", &r->declared);
  }
  if (r->depth == 0 && strcmp(name, "tree") == 0) {
    r->bare = true;
    return start_tree(r, attributes);
  }
  if (inside == 0 && r->depth > 0 && strcmp(name, "tree") == 0) {
    return start_tree(r, attributes);
  }
  if (inside == 1 && strcmp(name, "send") == 0) {
    return add_send(r, attributes);
  }
  return pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r),
                      "<%.32s> is not expected here: a file of trees is <Algo>, <tree> in it, <send> in that", name);
}

static void stop_parser(reader *r, polyccl_result result) {
  if (result != POLYCCL_SUCCESS && r->result == POLYCCL_SUCCESS) {
    r->result = result;
    XML_StopParser(r->parser, XML_FALSE);
  }
}

static void XMLCALL on_start(void *data, const XML_Char *name, const XML_Char **attributes) {
  reader *r = data;
  if (r->result == POLYCCL_SUCCESS) {
    stop_parser(r, start_element(r, name, attributes));
    r->depth++;
  }
}

static void XMLCALL on_end(void *data, const XML_Char *name) {
  (void)name;
  reader *r = data;
  r->depth--;
}

static void XMLCALL on_doctype(void *data, const XML_Char *name, const XML_Char *system, const XML_Char *public,
                               int internal) {
  (void)system;
  (void)public;
  (void)internal;
  reader *r = data;
  stop_parser(r, pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r),
                              "a document type (<!DOCTYPE %.32s>) is not allowed", name));
}

static polyccl_result parse_document(reader *r, const char *text, size_t length) {
  r->parser = XML_ParserCreate(NULL);
  if (r->parser == NULL) {
    return pccl_no_memory("a forest of trees");
  }
  XML_SetUserData(r->parser, r);
  XML_SetElementHandler(r->parser, on_start, on_end);
  XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
  if (XML_Parse(r->parser, text, (int)length, XML_TRUE) != XML_STATUS_OK && r->result == POLYCCL_SUCCESS) {
    r->result = pccl_fail_at(POLYCCL_ERROR_INVALID, current_place(r), "not well-formed XML: %s",
                             XML_ErrorString(XML_GetErrorCode(r->parser)));
  }
  XML_ParserFree(r->parser);
  return r->result;
}

/* ---- nodes to ranks ---- */

typedef struct named {
  const char *name;
  int32_t node;
} named;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Runs of digits compare as numbers: "(0, 'GPU', 10)" comes after "(0, 'GPU', 9)". */
static int compare_natural(const void *a, const void *b) {
  const char *x = ((const named *)a)->name, *y = ((const named *)b)->name;
  while (*x != '\0' && *y != '\0') {
    if (!is_digit(*x) || !is_digit(*y)) {
      if (*x != *y) {
        return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
      }
      x++;
      y++;
      continue;
    }
    size_t m = strspn(x, "0123456789"), n = strspn(y, "0123456789");
    if (m != n) {
      return m < n ? -1 : 1;
    }
    int order = strncmp(x, y, m);
    if (order != 0) {
      return order;
    }
    x += m;
    y += n;
  }
  return (*x != '\0') - (*y != '\0');
}

static polyccl_result number_nodes(reader *r) {
  size_t count = r->names.len;
  named *order = pccl_array(count, sizeof *order);
  int32_t *rank = pccl_array(count, sizeof *rank);
  if (order == NULL || rank == NULL) {
    free(order);
    free(rank);
    return pccl_no_memory("a forest of trees");
  }
  for (size_t i = 0; i < count; i++) {
    order[i] = (named){r->names.data[i], (int32_t)i};
  }
  qsort(order, count, sizeof *order, compare_natural);
  for (size_t i = 0; i < count; i++) {
    rank[order[i].node] = (int32_t)i;
  }
  for (size_t i = 0; i < r->schedule->hop.len; i++) {
    pccl_hop *hop = &r->schedule->hop.data[i];
    hop->root = rank[hop->root];
    hop->src = rank[hop->src];
    hop->dst = rank[hop->dst];
  }
  r->schedule->root = rank[r->trees.data[0].root];
  free(order);
  free(rank);
  return POLYCCL_SUCCESS;
}

/* Trees from every node make an AllGather, trees from one node make a broadcast. */
static polyccl_result finish_schedule(reader *r) {
  pccl_synth *s = r->schedule;
  polyccl_location at = {s->file, r->trees.len > 0 ? r->trees.data[0].line : 0};
  if (r->trees.len == 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "the file has no trees");
  }
  bool one_root = true;
  int32_t chunks = r->taken.data[r->trees.data[0].root];
  for (size_t i = 0; i < r->trees.len; i++) {
    one_root = one_root && r->trees.data[i].root == r->trees.data[0].root;
  }
  for (size_t i = 0; i < r->names.len && !one_root; i++) {
    if (r->taken.data[i] != chunks) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "trees carry %d chunks from %.80s but %d from %.80s",
                          r->taken.data[i], r->names.data[i], chunks, r->names.data[r->trees.data[0].root]);
    }
  }
  if (r->declared != 0 && r->declared != chunks) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at, "trees carry %d chunks from %.80s, but nchunkspernode is %d", chunks,
                        r->names.data[r->trees.data[0].root], r->declared);
  }
  s->collective = one_root && r->names.len > 1 ? POLYCCL_BROADCAST : POLYCCL_ALLGATHER;
  s->ranks = (int32_t)r->names.len;
  s->chunks = chunks;
  return number_nodes(r);
}

polyccl_result pccl_forestcoll_read(pccl_loader *loader, const char *text, size_t length, pccl_synth *schedule) {
  (void)loader; /* no parameters */
  reader r = {.schedule = schedule};
  polyccl_result result = parse_document(&r, text, length);
  if (result == POLYCCL_SUCCESS) {
    result = finish_schedule(&r);
  }
  for (size_t i = 0; i < r.names.len; i++) {
    free(r.names.data[i]);
  }
  pccl_vec_free(&r.names);
  pccl_vec_free(&r.trees);
  pccl_vec_free(&r.taken);
  pccl_vec_free(&r.level);
  pccl_vec_free(&r.reached);
  pccl_map_free(&r.index);
  return result;
}
