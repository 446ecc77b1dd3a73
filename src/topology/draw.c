/* A topology as an SVG picture. */
#include "topology/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/svg.h"
#include "base/vec.h"

static const char *const kind_fill[POLYCCL_NODE_KIND_COUNT] = {"#d7ecfa", "#eeeeee", "#fdebd0", "#e3f3e6"};
enum { LEGEND_LINE = 18, MAX_LINKS = 20000 };

/* Colour-blind people can tell these colours apart. A usual type has the same colour in every picture. */
static const char *colour_of_type(const polyccl_topology *t, int32_t type) {
  static const struct {
    const char *type, *colour;
  } usual[] = {{"NVLink", "#0072b2"},  {"xGMI", "#cc79a7"},   {"link", "#0072b2"},  {"PCIe", "#d55e00"},
               {"network", "#009e73"}, {"socket", "#7a7a7a"}, {"memory", "#7a7a7a"}};
  static const char *const others[] = {"#b8860b", "#e69f00", "#56b4e9", "#222222"};
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
    if (strcmp(usual[i].type, t->link_type[type]) == 0) {
      return usual[i].colour;
    }
  }
  return others[(size_t)type % (sizeof others / sizeof others[0])];
}

/* The width grows with the logarithm of the bandwidth, so that NVLink looks wider than PCIe but not too wide. */
static double stroke_width(const polyccl_link *link) {
  double width = 0.6 + 0.55 * log2(1 + link->bandwidth / 8);
  return width > 6 ? 6 : width;
}

static void draw_link(pccl_svg *svg, const polyccl_topology *t, const pccl_layout *layout, size_t index, bool pair) {
  const polyccl_link *link = &t->link[index];
  const pccl_node_place *a = &layout->place[link->from], *b = &layout->place[link->to];
  char name[2 * PCCL_MAX_NAME + 80];
  snprintf(name, sizeof name, "%s %s %s: %s, %g GB/s, %g us", t->node[link->from].name, pair ? "<->" : "->",
           t->node[link->to].name, t->link_type[link->type], link->bandwidth, link->latency);
  pccl_svg_style style = {.stroke = colour_of_type(t, link->type), .width = stroke_width(link), .opacity = 0.85};
  double head = pair ? 0 : 7;
  pccl_svg_group(svg, name);
  if (a->y == b->y) { /* an arc, below devices but above hosts and switches */
    double way = t->node[link->from].kind == POLYCCL_NODE_DEVICE ? 1 : -1;
    double edge = a->y + way * PCCL_DRAW_NODE_HEIGHT / 2;
    double depth = pccl_arc_depth(fabs(a->x - b->x)) * (way > 0 ? 1 : 0.3), inwards = (b->x - a->x) * 0.2;
    pccl_svg_curve(svg, a->x + (b->x > a->x ? 8 : -8), edge, a->x + inwards, edge + way * depth * 1.3, b->x - inwards,
                   edge + way * depth * 1.3, b->x - (b->x > a->x ? 8 : -8), edge, head, style);
  } else {
    /* The line meets a wide bar above or below its other end, and a narrow box in the middle. */
    double way = b->y > a->y ? 1 : -1, ya = a->y + way * PCCL_DRAW_NODE_HEIGHT / 2,
           yb = b->y - way * PCCL_DRAW_NODE_HEIGHT / 2;
    double xa = fmax(a->x - a->width / 2 + 8, fmin(a->x + a->width / 2 - 8, b->x));
    double xb = fmax(b->x - b->width / 2 + 8, fmin(b->x + b->width / 2 - 8, a->x));
    xa = a->width > PCCL_DRAW_NODE_WIDTH ? xa : a->x;
    xb = b->width > PCCL_DRAW_NODE_WIDTH ? xb : b->x;
    if (pair) {
      pccl_svg_line(svg, xa, ya, xb, yb, style);
    } else {
      pccl_svg_arrow(svg, xa, ya, xb, yb, head, style);
    }
  }
  pccl_svg_group_end(svg);
}

/* Draws `text`, without the end that does not fit into `width`. */
static void draw_label(pccl_svg *svg, double x, double y, double width, pccl_svg_font font, const char *text) {
  char cut[PCCL_MAX_NAME + 4];
  snprintf(cut, sizeof cut, "%.*s", PCCL_MAX_NAME, text);
  for (size_t length = strlen(cut); length > 2 && pccl_svg_text_width(cut, font.size) > width; length--) {
    while (length > 2 && ((unsigned char)cut[length - 1] & 0xc0) == 0x80) { /* do not cut inside a UTF-8 character */
      length--;
    }
    strcpy(cut + length - 1, "…");
  }
  pccl_svg_text(svg, x, y, font, cut);
}

/* The name of a node without the name of its machine. */
static const char *short_name(const polyccl_topology *t, const polyccl_node *node) {
  const char *machine = node->machine >= 0 ? t->machine[node->machine] : "";
  size_t length = strlen(machine);
  bool prefixed = length > 0 && strncmp(node->name, machine, length) == 0 &&
                  (node->name[length] == '.' || node->name[length] == '/') && node->name[length + 1] != '\0';
  return prefixed ? node->name + length + 1 : node->name;
}

static void draw_node(pccl_svg *svg, const polyccl_topology *t, const polyccl_node *node,
                      const pccl_node_place *place) {
  char tooltip[2 * PCCL_MAX_NAME + 64];
  snprintf(tooltip, sizeof tooltip, node->model >= 0 ? "%s: %s %s" : "%s: %s", node->name,
           polyccl_node_kind_name(node->kind), node->model >= 0 ? t->model[node->model].name : "");
  double height = PCCL_DRAW_NODE_HEIGHT, width = place->width;
  pccl_svg_group(svg, tooltip);
  pccl_svg_rect(svg, place->x - width / 2, place->y - height / 2, width, height,
                node->kind == POLYCCL_NODE_SWITCH ? 12 : 4,
                (pccl_svg_style){.fill = kind_fill[node->kind], .stroke = "#555555", .width = 1});
  pccl_svg_font small = {.size = 10, .anchor = PCCL_SVG_MIDDLE};
  if (node->rank >= 0) {
    char rank[16];
    snprintf(rank, sizeof rank, "%d", (int)node->rank);
    pccl_svg_text(svg, place->x, place->y - 2, (pccl_svg_font){.size = 13, .anchor = PCCL_SVG_MIDDLE, .bold = true},
                  rank);
    draw_label(svg, place->x, place->y + 11, width - 6, small, short_name(t, node));
  } else {
    draw_label(svg, place->x, place->y + 4, width - 6, small, short_name(t, node));
  }
  pccl_svg_group_end(svg);
}

static void format_range(char *text, size_t size, double low, double high, const char *unit) {
  if (low < high) {
    snprintf(text, size, "%g to %g %s", low, high, unit);
  } else {
    snprintf(text, size, "%g %s", low, unit);
  }
}

/* One line for each type, "NVLink: 300 GB/s, 0.2 us"; a range where its links differ. */
static void draw_legend(pccl_svg *svg, const polyccl_topology *t, double y) {
  for (size_t type = 0; type < t->link_types; type++) {
    double low = PCCL_MAX_BANDWIDTH, high = 0, soon = PCCL_MAX_LATENCY, late = 0;
    for (size_t i = 0; i < t->links; i++) {
      const polyccl_link *link = &t->link[i];
      if (link->type == (int32_t)type) {
        low = fmin(low, link->bandwidth), high = fmax(high, link->bandwidth);
        soon = fmin(soon, link->latency), late = fmax(late, link->latency);
      }
    }
    char text[PCCL_MAX_NAME + 140];
    char bandwidth[64], latency[64];
    format_range(bandwidth, sizeof bandwidth, low, high, "GB/s");
    format_range(latency, sizeof latency, soon, late, "us");
    snprintf(text, sizeof text, "%s: %s, %s", t->link_type[type], bandwidth, latency);
    y += LEGEND_LINE;
    pccl_svg_line(svg, 24, y - 4, 52, y - 4, (pccl_svg_style){.stroke = colour_of_type(t, (int32_t)type), .width = 3});
    pccl_svg_text(svg, 60, y, (pccl_svg_font){.size = 12}, text);
  }
}

static void draw_boxes(pccl_svg *svg, const polyccl_topology *t, const pccl_layout *layout) {
  for (int i = 0; i < layout->boxes; i++) {
    const pccl_box *box = &layout->box[i];
    char title[PCCL_MAX_NAME + 80];
    int n = snprintf(title, sizeof title, "%s", t->machine[i]);
    if (box->hidden > 0) {
      snprintf(title + n, sizeof title - (size_t)n, " (%d more nodes are not drawn)", box->hidden);
    }
    pccl_svg_rect(svg, box->x, box->y, box->width, box->height, 8,
                  (pccl_svg_style){.fill = "#fafafa", .stroke = "#bbbbbb", .width = 1});
    draw_label(svg, box->x + 10, box->y + 16, box->width - 20, (pccl_svg_font){.size = 11, .bold = true}, title);
  }
}

/* Draws the links between nodes that are drawn. False: there are too many, and some were left out. */
static bool draw_links(pccl_svg *svg, const polyccl_topology *t, const pccl_layout *layout) {
  int drawn = 0;
  for (size_t i = 0; i < t->links; i++) {
    bool pair = pccl_link_is_pair(t, i);
    if (layout->place[t->link[i].from].drawn && layout->place[t->link[i].to].drawn) {
      if (++drawn > MAX_LINKS) {
        return false;
      }
      draw_link(svg, t, layout, i, pair);
    }
    i += pair;
  }
  return true;
}

static void draw_title(pccl_svg *svg, const polyccl_topology *t, const pccl_layout *layout) {
  char text[PCCL_MAX_NAME + 200];
  int n = snprintf(text, sizeof text, "%d ranks, %d machine%s", (int)t->ranks, (int)t->machines,
                   t->machines == 1 ? "" : "s");
  if (t->machines > layout->boxes) {
    snprintf(text + n, sizeof text - (size_t)n, "; the first %d are drawn", layout->boxes);
  }
  draw_label(svg, 24, 30, layout->width - 48, (pccl_svg_font){.size = 16, .bold = true}, t->name);
  pccl_svg_text(svg, 24, 50, (pccl_svg_font){.size = 12}, text);
}

polyccl_result polyccl_topology_write_svg(const polyccl_topology *t, FILE *to) {
  pccl_layout layout;
  PCCL_TRY(pccl_layout_create(t, &layout));
  pccl_svg svg = {0};
  double height = layout.height + LEGEND_LINE * ((double)t->link_types + 2) + 12;
  pccl_svg_open(&svg, layout.width, height, t->name);
  draw_title(&svg, t, &layout);
  draw_boxes(&svg, t, &layout);
  bool all = draw_links(&svg, t, &layout);
  for (size_t i = 0; i < t->nodes; i++) {
    if (layout.place[i].drawn) {
      draw_node(&svg, t, &t->node[i], &layout.place[i]);
    }
  }
  draw_legend(&svg, t, layout.height + 8);
  if (!all) {
    pccl_svg_text(&svg, 24, height - 12, (pccl_svg_font){.size = 12}, "Not all links are drawn: there are too many.");
  }
  polyccl_result result = pccl_svg_close(&svg);
  if (result == POLYCCL_SUCCESS) {
    result = pccl_topology_put(&svg.out, to);
  }
  pccl_text_free(&svg.out);
  pccl_layout_destroy(&layout);
  return result;
}
