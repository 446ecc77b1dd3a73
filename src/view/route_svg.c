/* Draws the route of a chunk as a graph: one row for each rank, and the chunk moves from left to right. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "plan/plan.h"
#include "view/paint.h"
#include "view/pictures.h"
#include "view/route.h"

enum { MAX_STOPS = 4000 };

typedef struct drawing {
  pccl_svg *svg;
  const polyccl_plan *plan;
  pccl_schedule schedule;
  pccl_route route;
  double *x, *y; /* [stops]: upper left corners */
  double *rank_y, *rank_height;
} drawing;

static const double left = 92, top = 62, box_width = 48, box_height = 24, column = 88, row = 32, gap = 6;

/* Places the stops. Those of one rank in one column stand below one another, so the row of a rank is as high as its
 * fullest column. Ranks that the chunk never reaches have no row. Returns where the rows end. */
static double place_stops(drawing *d, int32_t *used) {
  size_t ranks = (size_t)d->plan->ranks, columns = (size_t)d->route.columns;
  for (size_t i = 0; i < d->route.stops.len; i++) {
    const pccl_route_stop *stop = &d->route.stops.data[i];
    int32_t slot = used[(size_t)stop->rank * columns + (size_t)stop->column]++;
    d->x[i] = left + stop->column * column;
    d->y[i] = slot * row;
  }
  double y = top;
  for (size_t rank = 0; rank < ranks; rank++) {
    int32_t max_slots = 0;
    for (size_t c = 0; c < columns; c++) {
      max_slots = used[rank * columns + c] > max_slots ? used[rank * columns + c] : max_slots;
    }
    d->rank_y[rank] = y;
    d->rank_height[rank] = max_slots * row;
    y += max_slots > 0 ? max_slots * row + gap : 0;
  }
  for (size_t i = 0; i < d->route.stops.len; i++) {
    d->y[i] += d->rank_y[d->route.stops.data[i].rank] + (row - box_height) / 2;
  }
  return y;
}

static void draw_rows(const drawing *d, double width) {
  for (int rank = 0; rank < d->plan->ranks; rank++) {
    if (d->rank_height[rank] > 0) {
      char name[32];
      snprintf(name, sizeof name, "rank %d", rank);
      pccl_svg_rect(d->svg, left - 10, d->rank_y[rank], width - left - 4, d->rank_height[rank], 3,
                    (pccl_svg_style){.fill = "#f3f5f8"});
      pccl_svg_text(d->svg, 14, d->rank_y[rank] + row / 2 + 4, (pccl_svg_font){.size = 13, .bold = true}, name);
    }
  }
}

static void draw_legs(const drawing *d) {
  for (size_t i = 0; i < d->route.legs.len; i++) {
    const pccl_leg *leg = &d->route.legs.data[i];
    double x1 = d->x[leg->from] + box_width, y1 = d->y[leg->from] + box_height / 2;
    double x2 = d->x[leg->to], y2 = d->y[leg->to] + box_height / 2, bend = fmax(12, (x2 - x1) * 0.45);
    pccl_svg_style style = {.stroke = "#4b5563", .width = 1.3, .opacity = 0.85};
    style.dash = leg->message ? NULL : "4 2.5";
    pccl_svg_curve(d->svg, x1, y1, x1 + bend, y1, x2 - bend, y2, x2, y2, 7, style);
  }
}

static void describe_stop(const drawing *d, const pccl_route_stop *stop, pccl_text *tip) {
  const polyccl_plan *plan = d->plan;
  if (stop->step < 0) {
    pccl_text_add(tip, "rank %d holds it before the start", stop->rank);
    return;
  }
  int32_t block = d->schedule.block[stop->step];
  const polyccl_step *step = &plan->step[stop->step];
  polyccl_location at = pccl_step_location(plan, step);
  pccl_text_add(tip, "rank %d, thread block %d, step %d: %s", stop->rank, block - plan->rank[stop->rank].tb,
                stop->step - plan->tb[block].step, pccl_ops[step->op].name);
  if (step->recv >= 0) {
    pccl_text_add(tip, " from rank %d channel %d", plan->connection[step->recv].src,
                  plan->connection[step->recv].channel);
  }
  if (at.file != NULL) {
    pccl_text_add(tip, ", %s:%d", at.file, at.line);
  }
}

static void draw_stop(const drawing *d, size_t i) {
  const pccl_route_stop *stop = &d->route.stops.data[i];
  const char *paint = stop->step >= 0 ? pccl_op_paint[d->plan->step[stop->step].op].light : "#ffffff";
  pccl_text tip = {0};
  describe_stop(d, stop, &tip);
  pccl_svg_group(d->svg, tip.data);
  pccl_svg_rect(d->svg, d->x[i], d->y[i], box_width, box_height, stop->step < 0 ? 12 : 4,
                (pccl_svg_style){.fill = paint,
                                 .stroke = stop->step < 0 ? "#7a8694"
                                           : stop->stays  ? "#111827"
                                                          : NULL,
                                 .width = stop->stays && stop->step >= 0 ? 2 : 1.2});
  pccl_svg_text(
      d->svg, d->x[i] + box_width / 2, d->y[i] + 16,
      (pccl_svg_font){.size = 11.5, .anchor = PCCL_SVG_MIDDLE, .bold = stop->step >= 0, .fill = pccl_ink_on(paint)},
      stop->step >= 0 ? pccl_ops[d->plan->step[stop->step].op].name : "start");
  pccl_svg_group_end(d->svg);
  d->svg->out.failed |= tip.failed;
  pccl_text_free(&tip);
}

static void draw_key(const drawing *d, double y) {
  uint32_t ops = 0;
  for (size_t i = 0; i < d->route.stops.len; i++) {
    ops |= d->route.stops.data[i].step >= 0 ? 1u << d->plan->step[d->route.stops.data[i].step].op : 0;
  }
  double x = 14 + pccl_picture_legend(d->svg, 14, y, ops, 0);
  pccl_svg_rect(d->svg, x, y - 10, 14, 12, 2, (pccl_svg_style){.stroke = "#111827", .width = 2});
  pccl_svg_text(d->svg, x + 20, y, (pccl_svg_font){.size = 12}, "in the output");
  bool local = false;
  for (size_t i = 0; i < d->route.legs.len; i++) {
    local |= !d->route.legs.data[i].message;
  }
  if (local) {
    pccl_svg_line(d->svg, x + 112, y - 4, x + 142, y - 4,
                  (pccl_svg_style){.stroke = "#4b5563", .width = 1.3, .dash = "4 2.5"});
    pccl_svg_text(d->svg, x + 148, y, (pccl_svg_font){.size = 12}, "inside the rank");
  }
}

static polyccl_result draw_route(drawing *d, int chunk) {
  size_t stops = d->route.stops.len;
  if (stops > MAX_STOPS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT, "the route of chunk %d has %zu stops, more than a picture can show (%d)",
                     chunk, stops, MAX_STOPS);
  }
  size_t slots = (size_t)d->plan->ranks * (size_t)d->route.columns;
  int32_t *used = pccl_zeroed(slots, sizeof *used);
  d->x = pccl_array(stops, sizeof *d->x);
  d->y = pccl_array(stops, sizeof *d->y);
  d->rank_y = pccl_array((size_t)d->plan->ranks, sizeof *d->rank_y);
  d->rank_height = pccl_array((size_t)d->plan->ranks, sizeof *d->rank_height);
  if (used == NULL || d->x == NULL || d->y == NULL || d->rank_y == NULL || d->rank_height == NULL) {
    free(used);
    return pccl_no_memory("a picture");
  }
  double width = fmax(left + d->route.columns * column, 560), height = place_stops(d, used) + 34;
  free(used);
  char title[512];
  snprintf(title, sizeof title, "%.200s: the way of chunk %d on %d ranks",
           d->plan->name != NULL ? d->plan->name : "plan", chunk, d->plan->ranks);
  pccl_svg_open(d->svg, width, height, title);
  pccl_svg_text(d->svg, 14, 26, (pccl_svg_font){.size = 16, .bold = true}, title);
  draw_rows(d, width);
  draw_legs(d);
  for (size_t i = 0; i < stops; i++) {
    draw_stop(d, i);
  }
  draw_key(d, height - 12);
  return pccl_svg_close(d->svg);
}

polyccl_result pccl_picture_route(pccl_svg *svg, const polyccl_plan *plan, int chunk) {
  drawing d = {.svg = svg, .plan = plan};
  PCCL_TRY(pccl_schedule_make(plan, &d.schedule));
  polyccl_result result = pccl_route_find(plan, &d.schedule, chunk, &d.route);
  if (result == POLYCCL_SUCCESS) {
    result = draw_route(&d, chunk);
  }
  pccl_schedule_free(&d.schedule);
  pccl_route_free(&d.route);
  free(d.x);
  free(d.y);
  free(d.rank_y);
  free(d.rank_height);
  if (result != POLYCCL_SUCCESS) {
    pccl_text_free(&svg->out);
  }
  return result;
}
