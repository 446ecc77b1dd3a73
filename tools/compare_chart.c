/* The chart of polyccl compare: bandwidth over size, one curve for each series. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/svg.h"
#include "base/vec.h"
#include "compare.h"
#include "sizes.h"

enum { WIDTH = 760, PLOT_HEIGHT = 360, LEFT = 64, RIGHT = 24, TOP = 44, BOTTOM = 52, ROW = 18, MAX_X_LABELS = 9 };

/* The colours of Okabe and Ito (2008), which colour-blind readers can distinguish; later curves repeat them with
 * dashes. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
enum { COLOURS = sizeof colours / sizeof colours[0] };
static const char *const dashes[] = {NULL, "6 3", "2 2", "8 3 2 3"};
enum { DASHES = sizeof dashes / sizeof dashes[0] };

static pccl_svg_style line_of(size_t curve) {
  return (pccl_svg_style){.stroke = colours[curve % COLOURS], .width = 2, .dash = dashes[curve / COLOURS % DASHES]};
}

/* 0 bytes are drawn one step before 1 byte. */
static double log_of(uint64_t size) { return log2(size > 0 ? (double)size : 0.5); }

static double x_of(const pccl_chart *chart, uint64_t size) {
  double low = log_of(chart->size[0]), high = log_of(chart->size[chart->sizes - 1]);
  double share = high > low ? (log_of(size) - low) / (high - low) : 0.5;
  return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double y_of(double value, double top) { return TOP + PLOT_HEIGHT * (1 - value / top); }

/* Returns 1, 2 or 5 times a power of ten, so that about five ticks reach `max`. */
static double tick_of(double max) {
  double power = pow(10, floor(log10(max / 5)));
  double rest = max / 5 / power;
  return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

static void draw_axes(pccl_svg *svg, const pccl_chart *chart, double top, double tick) {
  const pccl_svg_style grid = {.stroke = "#dddddd", .width = 1}, axis = {.stroke = "#444444", .width = 1};
  char text[64];
  for (int i = 0; i * tick <= top * (1 + 1e-9); i++) {
    double y = y_of(i * tick, top);
    pccl_svg_line(svg, LEFT, y, WIDTH - RIGHT, y, i == 0 ? axis : grid);
    snprintf(text, sizeof text, "%g", i * tick);
    pccl_svg_text(svg, LEFT - 8, y + 4, (pccl_svg_font){.size = 12, .anchor = PCCL_SVG_END}, text);
  }
  size_t every = (chart->sizes + MAX_X_LABELS - 1) / MAX_X_LABELS;
  for (size_t i = 0; i < chart->sizes; i += every) {
    double x = x_of(chart, chart->size[i]);
    pccl_svg_line(svg, x, TOP + PLOT_HEIGHT, x, TOP + PLOT_HEIGHT + 5, axis);
    pccl_svg_text(svg, x, TOP + PLOT_HEIGHT + 20, (pccl_svg_font){.size = 12, .anchor = PCCL_SVG_MIDDLE},
                  pccl_size_text(chart->size[i], text, sizeof text));
  }
  pccl_svg_line(svg, LEFT, TOP, LEFT, TOP + PLOT_HEIGHT, axis);
  pccl_svg_text(svg, 18, TOP + PLOT_HEIGHT / 2.0,
                (pccl_svg_font){.size = 13, .anchor = PCCL_SVG_MIDDLE, .upwards = true}, "bus bandwidth, GB/s");
  pccl_svg_text(svg, (LEFT + WIDTH - RIGHT) / 2.0, TOP + PLOT_HEIGHT + 40,
                (pccl_svg_font){.size = 13, .anchor = PCCL_SVG_MIDDLE}, "size of the larger buffer");
}

static polyccl_result draw_curve(pccl_svg *svg, const pccl_chart *chart, size_t index, double top) {
  const pccl_curve *curve = &chart->curve[index];
  double *points = pccl_array(2 * chart->sizes, sizeof *points);
  if (points == NULL) {
    return pccl_no_memory("a chart");
  }
  for (size_t i = 0; i < chart->sizes; i++) {
    points[2 * i] = x_of(chart, chart->size[i]);
    points[2 * i + 1] = y_of(curve->bus[i], top);
  }
  pccl_svg_polyline(svg, points, chart->sizes, false, line_of(index));
  for (size_t i = 0; i < chart->sizes; i++) {
    char size[32], tooltip[256];
    snprintf(tooltip, sizeof tooltip, "%s, %s: %.2f GB/s, %.1f us", curve->label,
             pccl_size_text(chart->size[i], size, sizeof size), curve->bus[i], curve->time[i]);
    pccl_svg_group(svg, tooltip);
    pccl_svg_circle(svg, points[2 * i], points[2 * i + 1], 3, (pccl_svg_style){.fill = colours[index % COLOURS]});
    pccl_svg_group_end(svg);
  }
  free(points);
  return POLYCCL_SUCCESS;
}

static void draw_legend(pccl_svg *svg, const pccl_chart *chart) {
  for (size_t i = 0; i < chart->curves; i++) {
    double y = TOP + PLOT_HEIGHT + BOTTOM + ROW * (double)i + ROW / 2.0;
    pccl_svg_line(svg, LEFT, y, LEFT + 28, y, line_of(i));
    pccl_svg_text(svg, LEFT + 36, y + 4, (pccl_svg_font){.size = 12}, chart->curve[i].label);
  }
}

polyccl_result pccl_chart_write(const pccl_chart *chart, FILE *to) {
  double max = 0;
  for (size_t c = 0; c < chart->curves; c++) {
    for (size_t i = 0; i < chart->sizes; i++) {
      max = fmax(max, chart->curve[c].bus[i]);
    }
  }
  double tick = tick_of(max > 0 ? max : 1), top = tick * ceil(max / tick + 1e-9);
  top = top > 0 ? top : tick;
  pccl_svg svg = {0};
  pccl_svg_open(&svg, WIDTH, TOP + PLOT_HEIGHT + BOTTOM + ROW * (double)chart->curves + 12, chart->title);
  pccl_svg_text(&svg, LEFT, 26, (pccl_svg_font){.size = 14, .bold = true}, chart->title);
  draw_axes(&svg, chart, top, tick);
  polyccl_result result = POLYCCL_SUCCESS;
  for (size_t c = 0; c < chart->curves && result == POLYCCL_SUCCESS; c++) {
    result = draw_curve(&svg, chart, c, top);
  }
  draw_legend(&svg, chart);
  polyccl_result closed = pccl_svg_close(&svg);
  if (result == POLYCCL_SUCCESS && closed == POLYCCL_SUCCESS) {
    fwrite(svg.out.data, 1, svg.out.len, to);
  }
  pccl_text_free(&svg.out);
  return result == POLYCCL_SUCCESS ? closed : result;
}
