/* Draws a plan as rows of thread blocks, without a clock. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"
#include "view/paint.h"
#include "view/pictures.h"
#include "view/schedule.h"

/* A picture with more would be larger than any page. */
enum { MAX_ROWS = 512, MAX_BOXES = 20000 };

typedef struct drawing {
  pccl_svg *svg;
  const polyccl_plan *plan;
  pccl_schedule schedule;
  int rank; /* or -1 */
  double width, height, left, top, column, row, box_width, box_height, gap;
  double *row_y; /* [tbs], < 0: not drawn */
  int32_t first_level, levels;
} drawing;

static const pccl_svg_style message_style = {.stroke = "#4b5563", .width = 1.1, .opacity = 0.75};
static const pccl_svg_style wait_style = {.stroke = "#8a5a2b", .width = 1.2, .dash = "4 2.5"};

static double box_x(const drawing *d, size_t step) {
  return d->left + (d->schedule.level[step] - d->first_level) * d->column;
}

static double box_y(const drawing *d, size_t step) { return d->row_y[d->schedule.block[step]]; }

static void add_operands(pccl_text *text, const polyccl_step *step) {
  const pccl_op_traits *op = &pccl_ops[step->op];
  static const char buffers[] = "ios";
  if (op->reads_src) {
    pccl_text_add(text, "%c%d", buffers[step->src_buf], step->src);
  }
  if (op->writes_dst) {
    pccl_text_add(text, op->reads_src ? "\xE2\x86\x92%c%d" : "%c%d", buffers[step->dst_buf], step->dst);
  }
  if (step->count > 1) {
    pccl_text_add(text, " \xC3\x97%d", step->count);
  }
}

static void describe_step(const drawing *d, size_t i, pccl_text *text) {
  const polyccl_plan *plan = d->plan;
  const polyccl_step *step = &plan->step[i];
  const polyccl_thread_block *tb = &plan->tb[d->schedule.block[i]];
  polyccl_location at = pccl_step_location(plan, step);
  pccl_text_add(text, "rank %d, thread block %d, step %d: %s ", tb->rank,
                d->schedule.block[i] - plan->rank[tb->rank].tb, (int32_t)i - tb->step, pccl_ops[step->op].name);
  add_operands(text, step);
  if (step->recv >= 0) {
    pccl_text_add(text, ", from rank %d channel %d", plan->connection[step->recv].src,
                  plan->connection[step->recv].channel);
  }
  if (step->send >= 0) {
    pccl_text_add(text, ", to rank %d channel %d", plan->connection[step->send].dst,
                  plan->connection[step->send].channel);
  }
  if (at.file != NULL) {
    pccl_text_add(text, ", %s:%d", at.file, at.line);
  }
}

/* In the picture of one rank the boxes have room for the peers and the source line. */
static void draw_details(const drawing *d, size_t i, double x, double y) {
  const polyccl_plan *plan = d->plan;
  const polyccl_step *step = &plan->step[i];
  polyccl_location at = pccl_step_location(plan, step);
  const char *ink = pccl_ink_on(pccl_op_paint[step->op].light);
  pccl_text line = {0};
  if (step->recv >= 0) {
    pccl_text_add(&line, "from %d ", plan->connection[step->recv].src);
  }
  if (step->send >= 0) {
    pccl_text_add(&line, "to %d", plan->connection[step->send].dst);
  }
  if (line.data != NULL) {
    pccl_svg_text(d->svg, x + 6, y + 43, (pccl_svg_font){.size = 11, .fill = ink}, line.data);
  }
  pccl_text_free(&line);
  if (at.file != NULL) {
    char number[32];
    snprintf(number, sizeof number, "line %d", at.line);
    pccl_svg_text(d->svg, x + 6, y + 57, (pccl_svg_font){.size = 11, .fill = ink}, number);
  }
}

static void draw_box(const drawing *d, size_t i) {
  const polyccl_step *step = &d->plan->step[i];
  double x = box_x(d, i), y = box_y(d, i);
  const char *paint = pccl_op_paint[step->op].light, *ink = pccl_ink_on(paint);
  pccl_text tip = {0}, text = {0};
  describe_step(d, i, &tip);
  pccl_svg_group(d->svg, tip.data);
  pccl_svg_rect(d->svg, x, y, d->box_width, d->box_height, 3, (pccl_svg_style){.fill = paint});
  if (d->rank >= 0) {
    pccl_svg_text(d->svg, x + 6, y + 15, (pccl_svg_font){.size = 12, .bold = true, .fill = ink},
                  pccl_ops[step->op].name);
  } else {
    pccl_svg_text(d->svg, x + d->box_width / 2, y + 12.5,
                  (pccl_svg_font){.size = 11, .bold = true, .anchor = PCCL_SVG_MIDDLE, .fill = ink},
                  pccl_ops[step->op].name);
  }
  pccl_text_add(&text, "%s", "");
  add_operands(&text, step);
  if (d->rank >= 0) {
    pccl_svg_text(d->svg, x + 6, y + 29, (pccl_svg_font){.size = 11, .fill = ink}, text.data != NULL ? text.data : "");
    draw_details(d, i, x, y);
  } else {
    pccl_svg_text(d->svg, x + d->box_width / 2, y + 25,
                  (pccl_svg_font){.size = 10, .anchor = PCCL_SVG_MIDDLE, .fill = ink},
                  text.data != NULL ? text.data : "");
  }
  pccl_svg_group_end(d->svg);
  d->svg->out.failed |= tip.failed || text.failed;
  pccl_text_free(&tip);
  pccl_text_free(&text);
}

/* From the end of one box to the start of the other. */
static void draw_curve(const drawing *d, size_t from, size_t to, pccl_svg_style style) {
  double x1 = box_x(d, from) + d->box_width, x2 = box_x(d, to);
  double y1 = box_y(d, from) + d->box_height / 2, y2 = box_y(d, to) + d->box_height / 2;
  double bend = fmax(10, fmin(60, (x2 - x1) * 0.5));
  pccl_svg_curve(d->svg, x1, y1, x1 + bend, y1, x2 - bend, y2, x2, y2, 6, style);
}

static size_t wait_step(const polyccl_plan *plan, int rank, const polyccl_wait *wait) {
  return (size_t)(plan->tb[plan->rank[rank].tb + wait->tb].step + wait->step);
}

static void draw_arrows(const drawing *d) {
  const polyccl_plan *plan = d->plan;
  for (size_t i = 0; i < plan->steps; i++) {
    int32_t block = d->schedule.block[i], sender = d->schedule.sender[i];
    if (d->row_y[block] < 0) {
      continue;
    }
    if (sender >= 0 && d->row_y[d->schedule.block[sender]] >= 0) {
      draw_curve(d, (size_t)sender, i, message_style);
    }
    for (int32_t w = 0; w < plan->step[i].waits; w++) {
      size_t needed = wait_step(plan, plan->tb[block].rank, &plan->wait[plan->step[i].wait + w]);
      if (d->schedule.block[needed] != block) {
        draw_curve(d, needed, i, wait_style);
      }
    }
  }
}

static double layout_rows(drawing *d) {
  const polyccl_plan *plan = d->plan;
  double y = d->top;
  for (size_t b = 0; b < plan->tbs; b++) {
    int rank = plan->tb[b].rank;
    if (d->rank >= 0 && rank != d->rank) {
      d->row_y[b] = -1;
      continue;
    }
    if (b > 0 && plan->tb[b - 1].rank != rank && d->rank < 0) {
      y += d->gap;
    }
    d->row_y[b] = y;
    y += d->row;
  }
  return y;
}

static void draw_rows(const drawing *d) {
  const polyccl_plan *plan = d->plan;
  for (size_t b = 0; b < plan->tbs; b++) {
    double y = d->row_y[b];
    if (y < 0) {
      continue;
    }
    int rank = plan->tb[b].rank;
    char name[48];
    pccl_svg_rect(d->svg, d->left - 6, y - 2, d->width - d->left - 6, d->box_height + 4, 3,
                  (pccl_svg_style){.fill = "#f3f5f8"});
    if ((size_t)plan->rank[rank].tb == b) {
      snprintf(name, sizeof name, "rank %d", rank);
      pccl_svg_text(d->svg, 14, y + d->box_height / 2 + 4, (pccl_svg_font){.size = 13, .bold = true}, name);
    }
    snprintf(name, sizeof name, "tb %d", (int32_t)b - plan->rank[rank].tb);
    pccl_svg_text(d->svg, d->left - 14, y + d->box_height / 2 + 4,
                  (pccl_svg_font){.size = 11, .anchor = PCCL_SVG_END, .fill = "#5b6570"}, name);
  }
}

static void draw_key(const drawing *d, double y) {
  uint32_t ops = 0;
  bool waits = false;
  for (size_t i = 0; i < d->plan->steps; i++) {
    if (d->row_y[d->schedule.block[i]] >= 0) {
      ops |= 1u << d->plan->step[i].op;
      waits |= d->plan->step[i].waits > 0;
    }
  }
  double x = 14 + pccl_picture_legend(d->svg, 14, y, ops, 0);
  if (d->rank < 0) {
    pccl_svg_arrow(d->svg, x, y - 4, x + 30, y - 4, 6, message_style);
    pccl_svg_text(d->svg, x + 36, y, (pccl_svg_font){.size = 12}, "message");
    x += 100;
  }
  if (waits) {
    pccl_svg_arrow(d->svg, x, y - 4, x + 30, y - 4, 6, wait_style);
    pccl_svg_text(d->svg, x + 36, y, (pccl_svg_font){.size = 12}, "waited for");
  }
}

static polyccl_result measure_drawing(drawing *d) {
  size_t boxes = 0, rows = 0;
  int32_t last = 0;
  d->first_level = INT32_MAX;
  for (size_t b = 0; b < d->plan->tbs; b++) {
    const polyccl_thread_block *tb = &d->plan->tb[b];
    if (d->rank >= 0 && tb->rank != d->rank) {
      continue;
    }
    rows++;
    boxes += (size_t)tb->steps;
    for (int32_t k = 0; k < tb->steps; k++) {
      int32_t level = d->schedule.level[tb->step + k];
      d->first_level = level < d->first_level ? level : d->first_level;
      last = level > last ? level : last;
    }
  }
  if (rows > MAX_ROWS || boxes > MAX_BOXES) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "%zu thread blocks with %zu steps are more than a picture can show (%d and %d); choose a rank "
                     "(--rank R) or a chunk (--chunk N), or a page over a topology",
                     rows, boxes, MAX_ROWS, MAX_BOXES);
  }
  d->first_level = boxes > 0 ? d->first_level : 0;
  d->levels = last - d->first_level + 1;
  bool detail = d->rank >= 0;
  d->left = 112;
  d->top = 58;
  d->box_width = detail ? 84 : 50;
  d->column = detail ? 112 : 80;
  d->box_height = detail ? 64 : 30;
  d->row = d->box_height + (detail ? 14 : 8);
  d->gap = 10;
  d->width = fmax(d->left + d->levels * d->column + 8, 640);
  d->height = layout_rows(d) + 44;
  return POLYCCL_SUCCESS;
}

static polyccl_result draw_plan(drawing *d) {
  PCCL_TRY(measure_drawing(d));
  const polyccl_plan *plan = d->plan;
  char title[512];
  snprintf(title, sizeof title, d->rank < 0 ? "%.200s: %s on %d ranks" : "%.200s: %s on %d ranks, rank %d",
           plan->name != NULL ? plan->name : "plan", polyccl_collective_name(plan->collective), plan->ranks, d->rank);
  pccl_svg_open(d->svg, d->width, d->height, title);
  pccl_svg_text(d->svg, 14, 26, (pccl_svg_font){.size = 16, .bold = true}, title);
  pccl_svg_text(d->svg, d->width - 14, 26, (pccl_svg_font){.size = 11, .anchor = PCCL_SVG_END, .fill = "#5b6570"},
                "order, not time");
  draw_rows(d);
  draw_arrows(d);
  for (size_t i = 0; i < plan->steps; i++) {
    if (d->row_y[d->schedule.block[i]] >= 0) {
      draw_box(d, i);
    }
  }
  draw_key(d, d->height - 16);
  return pccl_svg_close(d->svg);
}

polyccl_result pccl_picture_plan(pccl_svg *svg, const polyccl_plan *plan, int rank) {
  if (rank >= plan->ranks) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the plan has ranks 0 to %d, so it has no rank %d", plan->ranks - 1, rank);
  }
  drawing d = {.svg = svg, .plan = plan, .rank = rank, .row_y = pccl_array(plan->tbs, sizeof(double))};
  if (d.row_y == NULL) {
    return pccl_no_memory("a picture");
  }
  polyccl_result result = pccl_schedule_make(plan, &d.schedule);
  if (result == POLYCCL_SUCCESS) {
    result = draw_plan(&d);
  }
  pccl_schedule_free(&d.schedule);
  free(d.row_y);
  if (result != POLYCCL_SUCCESS) {
    pccl_text_free(&svg->out);
  }
  return result;
}
