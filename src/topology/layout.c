/* Computes where each node stands in the picture; draw.h describes the picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "topology/draw.h"
#include "topology/routes.h"

enum { UNKNOWN = -1, FABRIC = 1000, MARGIN = 24, TITLE = 46, BOX_PADDING = 14, BOX_TITLE = 26 };

typedef struct planner {
  const polyccl_topology *t;
  int32_t *level;  /* [nodes]: row; FABRIC: the last one */
  double *wish;    /* [nodes]: x that its neighbours suggest */
  int32_t *sorted; /* scratch: nodes of a row */
  pccl_layout *layout;
} planner;

/* Sets the row of each switch of a region to its distance from the seeds, which have row 0. A switch that no seed
 * reaches stays UNKNOWN. */
static void level_switches(planner *p, const pccl_region *own) {
  const struct pccl_routes *r = p->t->routes;
  for (int32_t round = 0, changed = 1; changed > 0 && round < 8; round++) {
    changed = 0;
    for (int32_t i = 0; i < own->nodes; i++) {
      int32_t node = own->node[i];
      for (int32_t k = r->out_first[node]; p->level[node] == round && k < r->out_first[node + 1]; k++) {
        int32_t next = p->t->link[r->out[k]].to;
        bool inside = pccl_region_of(p->t, next) == pccl_region_of(p->t, node);
        if (inside && p->t->node[next].kind == POLYCCL_NODE_SWITCH && p->level[next] == UNKNOWN) {
          p->level[next] = round + 1;
          changed++;
        }
      }
    }
  }
}

/* Sets the rows of a machine; returns the row of its devices. */
static int32_t level_machine(planner *p, int32_t machine) {
  const polyccl_topology *t = p->t;
  const pccl_region *own = &t->routes->region[machine];
  for (int32_t i = 0; i < own->nodes; i++) {
    polyccl_node_kind kind = t->node[own->node[i]].kind;
    p->level[own->node[i]] = kind == POLYCCL_NODE_HOST || kind == POLYCCL_NODE_NIC ? 0 : UNKNOWN;
  }
  level_switches(p, own);
  int32_t deepest = 0;
  bool top = false;
  for (int32_t i = 0; i < own->nodes; i++) {
    deepest = p->level[own->node[i]] > deepest ? p->level[own->node[i]] : deepest;
    top = top || p->level[own->node[i]] == 0;
  }
  int32_t devices = top ? deepest + 1 : 0;
  for (int32_t i = 0; i < own->nodes; i++) {
    int32_t node = own->node[i];
    if (t->node[node].kind == POLYCCL_NODE_DEVICE) {
      p->level[node] = devices;
    } else if (p->level[node] == UNKNOWN) {
      p->level[node] = FABRIC;
    }
  }
  return devices;
}

static _Thread_local const double *order_by; /* for by_wish(), since qsort() has no argument for it */

static int by_wish(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return order_by[x] != order_by[y] ? (order_by[x] > order_by[y]) - (order_by[x] < order_by[y]) : (x > y) - (x < y);
}

/* The middle of the neighbours that have their place already. Nodes without such neighbours come last, in order. */
static double wished_x(const planner *p, int32_t node) {
  const struct pccl_routes *r = p->t->routes;
  double sum = 0;
  int count = 0;
  for (int32_t k = r->out_first[node]; k < r->out_first[node + 1]; k++) {
    const pccl_node_place *place = &p->layout->place[p->t->link[r->out[k]].to];
    sum += place->drawn ? place->x : 0;
    count += place->drawn;
  }
  return count > 0 ? sum / count : INFINITY;
}

/* Puts the nodes of one level side by side, evenly over the width. */
static void place_row(planner *p, const pccl_region *own, int32_t level, double left, double width, double y,
                      int max_nodes) {
  int count = 0;
  bool outside = own == &p->t->routes->region[p->t->machines], all = p->layout->boxes == p->t->machines;
  for (int32_t i = 0; i < own->nodes && count < max_nodes; i++) {
    int32_t node = own->node[i];
    p->wish[node] = wished_x(p, node);
    if (p->level[node] == level &&
        (!outside || all || p->wish[node] < INFINITY)) { /* leaves out those of hidden machines */
      p->sorted[count++] = node;
    }
  }
  order_by = p->wish;
  qsort(p->sorted, (size_t)count, sizeof *p->sorted, by_wish);
  for (int i = 0; i < count; i++) {
    bool bar =
        p->t->node[p->sorted[i]].kind == POLYCCL_NODE_SWITCH && (count == 1 || p->t->node[p->sorted[i]].machine < 0);
    double box = bar ? fmax(width / count - 2 * MARGIN, PCCL_DRAW_NODE_WIDTH) : PCCL_DRAW_NODE_WIDTH;
    p->layout->place[p->sorted[i]] = (pccl_node_place){left + width * (i + 0.5) / count, y, box, true};
  }
}

static int row_count(const planner *p, const pccl_region *own, int32_t level) {
  int count = 0;
  for (int32_t i = 0; i < own->nodes; i++) {
    count += p->level[own->node[i]] == level;
  }
  return count;
}

/* The height that the arcs between devices need below their row. */
static double arc_room(const planner *p, const pccl_region *own) {
  const polyccl_topology *t = p->t;
  const struct pccl_routes *r = t->routes;
  double room = 0;
  for (int32_t i = 0; i < own->nodes; i++) {
    const pccl_node_place *from = &p->layout->place[own->node[i]];
    for (int32_t k = r->out_first[own->node[i]]; k < r->out_first[own->node[i] + 1]; k++) {
      int32_t next = t->link[r->out[k]].to;
      const pccl_node_place *to = &p->layout->place[next];
      if (t->node[next].kind == POLYCCL_NODE_DEVICE && from->drawn && to->drawn && from->y == to->y) {
        room = fmax(room, pccl_arc_depth(fabs(from->x - to->x)));
      }
    }
  }
  return room;
}

static void place_machine(planner *p, int32_t machine, int index, double left, double top) {
  const pccl_region *own = &p->t->routes->region[machine];
  int32_t devices = level_machine(p, machine);
  int widest = 2, drawn = 0;
  for (int32_t level = 0; level <= devices; level++) {
    int count = row_count(p, own, level);
    widest = count > widest ? count : widest;
  }
  widest = widest > PCCL_DRAW_DEVICES ? PCCL_DRAW_DEVICES : widest;
  double width = widest * PCCL_DRAW_PITCH, inside = left + BOX_PADDING,
         y = top + BOX_TITLE + PCCL_DRAW_NODE_HEIGHT / 2.0;
  /* Devices are placed first, since the others stand near their neighbours. */
  place_row(p, own, devices, inside, width, y + devices * PCCL_DRAW_ROW, PCCL_DRAW_DEVICES);
  for (int32_t level = devices - 1; level >= 0; level--) {
    place_row(p, own, level, inside, width, y + level * PCCL_DRAW_ROW, PCCL_DRAW_DEVICES);
  }
  double below = y + devices * PCCL_DRAW_ROW + arc_room(p, own);
  if (row_count(p, own, FABRIC) > 0) {
    below += PCCL_DRAW_ROW;
    place_row(p, own, FABRIC, inside, width, below, PCCL_DRAW_DEVICES);
  }
  for (int32_t i = 0; i < own->nodes; i++) {
    drawn += p->layout->place[own->node[i]].drawn;
  }
  p->layout->box[index] = (pccl_box){left, top, width + 2 * BOX_PADDING,
                                     below - top + PCCL_DRAW_NODE_HEIGHT / 2.0 + BOX_PADDING, own->nodes - drawn};
}

/* Sets the rows above the machines; returns their number. */
static int32_t level_outside(planner *p) {
  const polyccl_topology *t = p->t;
  const pccl_region *outside = &t->routes->region[t->machines];
  for (int32_t i = 0; i < outside->nodes; i++) {
    p->level[outside->node[i]] = UNKNOWN;
  }
  for (int32_t i = 0; i < outside->entries; i++) {
    p->level[t->link[outside->entry[i]].to] = 0;
  }
  level_switches(p, outside);
  int32_t rows = 0;
  for (int32_t i = 0; i < outside->nodes; i++) {
    int32_t *level = &p->level[outside->node[i]];
    *level = *level == UNKNOWN ? 0 : *level;
    rows = *level + 1 > rows ? *level + 1 : rows;
  }
  return rows;
}

static void place_all(planner *p) {
  const polyccl_topology *t = p->t;
  pccl_layout *layout = p->layout;
  int32_t rows = level_outside(p);
  double left = MARGIN, top = MARGIN + TITLE + rows * PCCL_DRAW_ROW, bottom = top;
  for (int32_t m = 0; m < t->machines && layout->boxes < PCCL_DRAW_MACHINES; m++) {
    int index = layout->boxes++;
    place_machine(p, m, index, left, top);
    left += layout->box[index].width + MARGIN;
    bottom = fmax(bottom, top + layout->box[index].height);
  }
  double width = left - 2 * MARGIN;
  for (int32_t row = 0; row < rows; row++) {
    double y = MARGIN + TITLE + (rows - 1 - row) * PCCL_DRAW_ROW + PCCL_DRAW_NODE_HEIGHT / 2.0;
    place_row(p, &t->routes->region[t->machines], row, MARGIN, width, y, PCCL_DRAW_OUTSIDE);
  }
  layout->width = fmax(left, 480);
  layout->height = bottom;
}

polyccl_result pccl_layout_create(const polyccl_topology *topology, pccl_layout *layout) {
  pccl_layout made = {.place = pccl_zeroed(topology->nodes, sizeof *made.place)};
  planner p = {.t = topology,
               .level = pccl_array(topology->nodes, sizeof *p.level),
               .wish = pccl_array(topology->nodes, sizeof *p.wish),
               .sorted = pccl_array(topology->nodes, sizeof *p.sorted),
               .layout = &made};
  bool ok = made.place != NULL && p.level != NULL && p.wish != NULL && p.sorted != NULL;
  if (ok) {
    place_all(&p);
    *layout = made;
  } else {
    free(made.place);
  }
  free(p.level);
  free(p.wish);
  free(p.sorted);
  return ok ? POLYCCL_SUCCESS : pccl_no_memory("a picture");
}

double pccl_arc_depth(double distance) { return fmin(120, 12 + 0.2 * distance); }

void pccl_layout_destroy(pccl_layout *layout) { free(layout->place); }
