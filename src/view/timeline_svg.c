/* Draws a trace over time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/vec.h"
#include "plan/plan.h"
#include "view/paint.h"
#include "view/pictures.h"

enum { MAX_BLOCKS = 1024, MAX_LINKS = 8, BLOCK = 20, BOX = 17, LINK = 34, AREA = 18 };

/* Boxes narrower than this (px) are merged: a column has the colour that fills the largest part of it. */
#define COLUMN 0.5

typedef struct drawing {
  pccl_svg *svg;
  const polyccl_trace *trace;
  int rank;                  /* or -1 */
  double left, right, scale; /* px, px per us */
  uint32_t ops, states;
} drawing;

static const pccl_svg_font soft = {.size = 11, .fill = "#5b6570"};

static double x_of(const drawing *d, double time) { return d->left + time * d->scale; }

static const char *paint_of(const drawing *d, const polyccl_trace_record *record) {
  return record->state == POLYCCL_TRACE_BUSY ? pccl_op_paint[d->trace->step[record->step].op].light
                                             : pccl_state_paint[record->state].light;
}

static void draw_span(const drawing *d, const polyccl_trace_record *record, double x0, double x1, double y) {
  if (record->state == POLYCCL_TRACE_BUSY) {
    pccl_svg_rect(d->svg, x0, y, x1 - x0, BOX, 0, (pccl_svg_style){.fill = paint_of(d, record)});
  } else {
    pccl_svg_rect(d->svg, x0, y + 6, x1 - x0, 5, 0, (pccl_svg_style){.fill = paint_of(d, record)});
  }
}

static void draw_box(const drawing *d, const polyccl_trace_record *record, double y) {
  double x0 = x_of(d, record->begin), x1 = x_of(d, record->end), gap = x1 - x0 > 4 ? 0.6 : 0;
  draw_span(d, record, x0, x1 - gap, y);
  const polyccl_trace_step *step = &d->trace->step[record->step];
  if (record->state == POLYCCL_TRACE_BUSY && step->op < POLYCCL_STEP_OP_COUNT &&
      pccl_svg_text_width(pccl_ops[step->op].name, 10.5) + 5 < x1 - x0) {
    pccl_svg_text(d->svg, (x0 + x1 - gap) / 2, y + 12.3,
                  (pccl_svg_font){.size = 10.5, .anchor = PCCL_SVG_MIDDLE, .fill = pccl_ink_on(paint_of(d, record))},
                  pccl_ops[step->op].name);
  }
}

/* Runs of columns of one colour; `run` is drawn when the colour changes. */
typedef struct merge {
  double column; /* index of the column being filled */
  double filled[POLYCCL_STEP_OP_COUNT + 1 + POLYCCL_TRACE_STATE_COUNT];
  size_t example[POLYCCL_STEP_OP_COUNT + 1 + POLYCCL_TRACE_STATE_COUNT]; /* a record of each colour */
  double run_begin, run_end;                                             /* columns */
  size_t run_record;
  const char *run_paint;
} merge;

static void end_run(const drawing *d, merge *m, double y) {
  if (m->run_paint != NULL) {
    draw_span(d, &d->trace->record[m->run_record], d->left + m->run_begin * COLUMN, d->left + m->run_end * COLUMN, y);
  }
  m->run_paint = NULL;
}

static void end_column(const drawing *d, merge *m, double y) {
  size_t best = 0;
  for (size_t i = 1; i < sizeof m->filled / sizeof m->filled[0]; i++) {
    best = m->filled[i] > m->filled[best] ? i : best;
  }
  if (m->filled[best] > 0) {
    const char *paint = paint_of(d, &d->trace->record[m->example[best]]);
    if (m->run_paint != paint || m->run_end != m->column) {
      end_run(d, m, y);
      m->run_paint = paint;
      m->run_begin = m->column;
      m->run_record = m->example[best];
    }
    m->run_end = m->column + 1;
  }
  memset(m->filled, 0, sizeof m->filled);
}

static void draw_block(drawing *d, const polyccl_trace_block *block, double y) {
  merge m = {.column = -1};
  for (size_t i = block->record; i < block->record + block->records; i++) {
    const polyccl_trace_record *record = &d->trace->record[i];
    uint8_t op = d->trace->step[record->step].op;
    bool busy = record->state == POLYCCL_TRACE_BUSY;
    d->ops |= busy ? 1u << op : 0;
    d->states |= 1u << record->state;
    double width = (record->end - record->begin) * d->scale;
    double column = floor((x_of(d, (record->begin + record->end) / 2) - d->left) / COLUMN);
    if (column != m.column || width >= COLUMN) {
      end_column(d, &m, y);
      m.column = column;
    }
    if (width >= COLUMN) {
      end_run(d, &m, y);
      draw_box(d, record, y);
    } else {
      size_t kind = busy ? op : POLYCCL_STEP_OP_COUNT + (size_t)record->state;
      m.filled[kind] += width;
      m.example[kind] = i;
    }
  }
  end_column(d, &m, y);
  end_run(d, &m, y);
}

static double tick_step(double span) {
  double power = pow(10, floor(log10(span / 8)));
  static const double factors[] = {1, 2, 5, 10};
  for (int i = 0; i < 4; i++) {
    if (span / (factors[i] * power) <= 10) {
      return factors[i] * power;
    }
  }
  return 10 * power;
}

static void draw_axis(const drawing *d, double top, double bottom) {
  double span = d->trace->duration;
  bool milli = span >= 10000;
  double unit = milli ? 1000 : 1, step = span > 0 ? tick_step(span / unit) : 1;
  int digits = (int)fmin(9, fmax(0, -floor(log10(step) + 1e-9)));
  for (int i = 0; i * step <= span / unit * (1 + 1e-9); i++) {
    double x = x_of(d, i * step * unit);
    char text[48];
    snprintf(text, sizeof text, "%.*f", digits, i * step);
    pccl_svg_line(d->svg, x, top, x, bottom, (pccl_svg_style){.stroke = "#dfe3e8"});
    pccl_svg_text(d->svg, x, top - 6, (pccl_svg_font){.size = 11, .anchor = PCCL_SVG_MIDDLE, .fill = soft.fill}, text);
  }
  pccl_svg_text(d->svg, d->left - 14, top - 6, (pccl_svg_font){.size = 11, .anchor = PCCL_SVG_END, .fill = soft.fill},
                milli ? "time (ms)" : "time (\xC2\xB5s)");
}

static bool shows_block(const drawing *d, const polyccl_trace_block *block) {
  return d->rank < 0 || block->rank == d->rank;
}

static double draw_blocks(drawing *d, double y) {
  const polyccl_trace *trace = d->trace;
  for (size_t i = 0, shown = 0; i < trace->blocks; i++) {
    const polyccl_trace_block *block = &trace->block[i];
    if (!shows_block(d, block)) {
      continue;
    }
    bool first = i == 0 || block[-1].rank != block->rank;
    y += first && shown++ > 0 ? 6 : 0;
    char name[32];
    if (first) {
      snprintf(name, sizeof name, "rank %d", block->rank);
      pccl_svg_text(d->svg, 14, y + 13, (pccl_svg_font){.size = 12, .bold = true}, name);
    }
    snprintf(name, sizeof name, "tb %d", block->tb);
    pccl_svg_text(d->svg, d->left - 14, y + 12.5,
                  (pccl_svg_font){.size = 11, .anchor = PCCL_SVG_END, .fill = soft.fill}, name);
    draw_block(d, block, y);
    y += BLOCK;
  }
  return y;
}

/* ---- links ---- */

typedef struct load {
  size_t link;
  double mean, scale; /* of the bandwidth; GB/s at the top of the area */
} link_load;

static int by_mean(const void *left, const void *right) {
  const link_load *a = left, *b = right;
  return a->mean != b->mean ? (a->mean > b->mean ? -1 : 1) : (a->link > b->link) - (a->link < b->link);
}

static double sample_end(const polyccl_trace *trace, const polyccl_trace_link *link, size_t i) {
  return i + 1 < link->sample + link->samples ? trace->sample[i + 1].time : trace->duration;
}

static link_load load_of(const polyccl_trace *trace, size_t index) {
  const polyccl_trace_link *link = &trace->link[index];
  link_load found = {index, 0, link->bandwidth};
  for (size_t i = link->sample; i < link->sample + link->samples; i++) {
    found.mean += trace->sample[i].rate * fmax(0, sample_end(trace, link, i) - trace->sample[i].time);
    found.scale = fmax(found.scale, trace->sample[i].rate);
  }
  found.mean = found.scale > 0 && trace->duration > 0 ? found.mean / trace->duration / found.scale : 0;
  return found;
}

/* Mean rate per pixel. */
static void draw_area(const drawing *d, const link_load *load, double top) {
  const polyccl_trace_link *link = &d->trace->link[load->link];
  size_t width = (size_t)(d->right - d->left);
  double *sums = pccl_zeroed(width, sizeof *sums), *points = pccl_array(4 * width + 4, sizeof *points);
  if (sums == NULL || points == NULL) {
    d->svg->out.failed = true;
    free(sums);
    free(points);
    return;
  }
  for (size_t i = link->sample; i < link->sample + link->samples; i++) {
    double x0 = fmin(fmax(0, d->trace->sample[i].time * d->scale), (double)width);
    double x1 = fmin((double)width, sample_end(d->trace, link, i) * d->scale);
    for (size_t p = (size_t)x0; p < width && (double)p < x1; p++) {
      sums[p] += d->trace->sample[i].rate * (fmin(x1, (double)p + 1) - fmax(x0, (double)p));
    }
  }
  size_t count = 0;
  points[count++] = d->left;
  points[count++] = top + AREA;
  for (size_t p = 0; p < width; p++) {
    double y = top + AREA - AREA * fmin(1, sums[p] / load->scale);
    if (p > 0 && fabs(points[count - 1] - y) < 1e-9) {
      points[count - 2] = d->left + (double)p + 1; /* the level goes on */
      continue;
    }
    points[count++] = d->left + (double)p;
    points[count++] = y;
    points[count++] = d->left + (double)p + 1;
    points[count++] = y;
  }
  points[count++] = d->left + (double)width;
  points[count++] = top + AREA;
  pccl_svg_polyline(d->svg, points, count / 2, true, (pccl_svg_style){.fill = "#5b8fc9"});
  free(sums);
  free(points);
}

static polyccl_result draw_links(drawing *d, double y, size_t shown, link_load *loads, size_t busy) {
  char text[160];
  snprintf(text, sizeof text, "Links (%zu of %zu that carry data, busiest first)", shown, busy);
  pccl_svg_text(d->svg, 14, y + 14, (pccl_svg_font){.size = 12, .bold = true}, text);
  y += 22;
  for (size_t i = 0; i < shown; i++, y += LINK) {
    pccl_svg_text(d->svg, d->left, y + 9, soft, d->trace->link[loads[i].link].name);
    pccl_svg_rect(d->svg, d->left, y + 13, d->right - d->left, AREA, 0, (pccl_svg_style){.fill = "#f0f2f5"});
    draw_area(d, &loads[i], y + 13);
    snprintf(text, sizeof text, "%.0f %% of %.4g GB/s", 100 * loads[i].mean, loads[i].scale);
    pccl_svg_text(d->svg, d->left - 8, y + 26, (pccl_svg_font){.size = 10.5, .anchor = PCCL_SVG_END}, text);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result draw_timeline(drawing *d, link_load *loads, size_t busy) {
  const polyccl_trace *trace = d->trace;
  size_t blocks = 0, ranks = 0, links = busy < MAX_LINKS ? busy : MAX_LINKS;
  for (size_t i = 0; i < trace->blocks; i++) {
    blocks += shows_block(d, &trace->block[i]);
    ranks += shows_block(d, &trace->block[i]) && (i == 0 || trace->block[i - 1].rank != trace->block[i].rank);
  }
  if (blocks == 0) {
    return pccl_fail(POLYCCL_ERROR_INVALID, "the trace has no rank %d", d->rank);
  }
  if (blocks > MAX_BLOCKS) {
    return pccl_fail(POLYCCL_ERROR_LIMIT,
                     "%zu thread blocks are more than a picture can show (%d); choose a rank "
                     "(--rank R) or write a page",
                     blocks, MAX_BLOCKS);
  }
  double top = 66, bottom = top + (double)(blocks * BLOCK + (ranks - 1) * 6), width = 1100;
  double height = bottom + (links > 0 ? 30 + (double)(links * LINK) : 0) + 36;
  d->left = 134;
  d->right = width - 24;
  d->scale = trace->duration > 0 ? (d->right - d->left) / trace->duration : 1;
  char title[320];
  snprintf(title, sizeof title, "%.200s (%.40s, %.4g \xC2\xB5s)", trace->name[0] != '\0' ? trace->name : "trace",
           trace->source, trace->duration);
  pccl_svg_open(d->svg, width, height, title);
  pccl_svg_text(d->svg, 14, 26, (pccl_svg_font){.size = 16, .bold = true}, title);
  draw_axis(d, top - 4, bottom);
  draw_blocks(d, top);
  if (links > 0) {
    PCCL_TRY(draw_links(d, bottom + 8, links, loads, busy));
  }
  pccl_picture_legend(d->svg, 14, height - 14, d->ops, d->states);
  return pccl_svg_close(d->svg);
}

polyccl_result pccl_picture_timeline(pccl_svg *svg, const polyccl_trace *trace, int rank) {
  drawing d = {.svg = svg, .trace = trace, .rank = rank};
  link_load *loads = pccl_array(trace->links, sizeof *loads);
  if (loads == NULL) {
    return pccl_no_memory("a picture");
  }
  size_t busy = 0;
  for (size_t i = 0; i < trace->links; i++) {
    loads[busy] = load_of(trace, i);
    busy += loads[busy].mean > 0;
  }
  if (busy > 0) {
    qsort(loads, busy, sizeof *loads, by_mean);
  }
  polyccl_result result = draw_timeline(&d, loads, busy);
  free(loads);
  if (result != POLYCCL_SUCCESS) {
    pccl_text_free(&svg->out);
  }
  return result;
}
