#include "base/svg.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/escape.h"

/* " name="12.5"": at most two decimals, no trailing zeros, no locale. */
static void write_number(pccl_text *out, double value) {
  double limited = isfinite(value) ? fmin(fmax(value, -1e9), 1e9) : 0;
  long long hundredths = llround(limited * 100);
  long long size = hundredths < 0 ? -hundredths : hundredths;
  pccl_text_add(out, "%s%lld", hundredths < 0 ? "-" : "", size / 100);
  if (size % 100 != 0) {
    pccl_text_add(out, size % 10 == 0 ? ".%lld" : ".%02lld", size % 10 == 0 ? size % 100 / 10 : size % 100);
  }
}

static void write_number_attribute(pccl_text *out, const char *name, double value) {
  pccl_text_add(out, " %s=\"", name);
  write_number(out, value);
  pccl_text_bytes(out, "\"", 1);
}

static void write_text_attribute(pccl_text *out, const char *name, const char *value) {
  pccl_text_add(out, " %s=\"", name);
  pccl_escape_xml(out, value);
  pccl_text_bytes(out, "\"", 1);
}

static void write_style(pccl_text *out, pccl_svg_style style) {
  write_text_attribute(out, "fill", style.fill != NULL ? style.fill : "none");
  if (style.stroke != NULL) {
    write_text_attribute(out, "stroke", style.stroke);
    if (style.width > 0 && style.width != 1) {
      write_number_attribute(out, "stroke-width", style.width);
    }
    if (style.dash != NULL) {
      write_text_attribute(out, "stroke-dasharray", style.dash);
    }
  }
  if (style.opacity > 0 && style.opacity < 1) {
    write_number_attribute(out, "opacity", style.opacity);
  }
}

static void end_element(pccl_text *out) { pccl_text_bytes(out, "/>\n", 3); }

void pccl_svg_open(pccl_svg *svg, double width, double height, const char *title) {
  pccl_text *out = &svg->out;
  pccl_text_add(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\"");
  write_number_attribute(out, "width", width);
  write_number_attribute(out, "height", height);
  pccl_text_add(out, " viewBox=\"0 0 ");
  write_number(out, width);
  pccl_text_bytes(out, " ", 1);
  write_number(out, height);
  pccl_text_add(out, "\" font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" role=\"img\">\n<title>");
  pccl_escape_xml(out, title);
  pccl_text_add(out, "</title>\n");
  pccl_svg_rect(svg, 0, 0, width, height, 0, (pccl_svg_style){.fill = "#ffffff"});
}

polyccl_result pccl_svg_close(pccl_svg *svg) {
  pccl_text_add(&svg->out, "</svg>\n");
  if (svg->out.failed) {
    pccl_text_free(&svg->out);
    return pccl_no_memory("a drawing");
  }
  return POLYCCL_SUCCESS;
}

void pccl_svg_group(pccl_svg *svg, const char *tooltip) {
  pccl_text_add(&svg->out, "<g>");
  if (tooltip != NULL) {
    pccl_text_add(&svg->out, "<title>");
    pccl_escape_xml(&svg->out, tooltip);
    pccl_text_add(&svg->out, "</title>");
  }
  pccl_text_bytes(&svg->out, "\n", 1);
}

void pccl_svg_group_end(pccl_svg *svg) { pccl_text_add(&svg->out, "</g>\n"); }

void pccl_svg_rect(pccl_svg *svg, double x, double y, double width, double height, double radius,
                   pccl_svg_style style) {
  pccl_text_add(&svg->out, "<rect");
  write_number_attribute(&svg->out, "x", x);
  write_number_attribute(&svg->out, "y", y);
  write_number_attribute(&svg->out, "width", fmax(width, 0));
  write_number_attribute(&svg->out, "height", fmax(height, 0));
  if (radius > 0) {
    write_number_attribute(&svg->out, "rx", radius);
  }
  write_style(&svg->out, style);
  end_element(&svg->out);
}

void pccl_svg_circle(pccl_svg *svg, double x, double y, double radius, pccl_svg_style style) {
  pccl_text_add(&svg->out, "<circle");
  write_number_attribute(&svg->out, "cx", x);
  write_number_attribute(&svg->out, "cy", y);
  write_number_attribute(&svg->out, "r", fmax(radius, 0));
  write_style(&svg->out, style);
  end_element(&svg->out);
}

void pccl_svg_line(pccl_svg *svg, double x1, double y1, double x2, double y2, pccl_svg_style style) {
  pccl_text_add(&svg->out, "<line");
  write_number_attribute(&svg->out, "x1", x1);
  write_number_attribute(&svg->out, "y1", y1);
  write_number_attribute(&svg->out, "x2", x2);
  write_number_attribute(&svg->out, "y2", y2);
  write_style(&svg->out, style);
  end_element(&svg->out);
}

void pccl_svg_polyline(pccl_svg *svg, const double *points, size_t count, bool closed, pccl_svg_style style) {
  pccl_text_add(&svg->out, closed ? "<polygon points=\"" : "<polyline points=\"");
  for (size_t i = 0; i < count; i++) {
    write_number(&svg->out, points[2 * i]);
    pccl_text_bytes(&svg->out, ",", 1);
    write_number(&svg->out, points[2 * i + 1]);
    if (i + 1 < count) {
      pccl_text_bytes(&svg->out, " ", 1);
    }
  }
  pccl_text_bytes(&svg->out, "\"", 1);
  write_style(&svg->out, style);
  end_element(&svg->out);
}

/* A filled triangle with its tip at (x, y), coming from (from_x, from_y); where the shaft has to end is stored. */
static void arrow_head(pccl_svg *svg, double from_x, double from_y, double x, double y, double head,
                       pccl_svg_style style, double *end_x, double *end_y) {
  double dx = x - from_x, dy = y - from_y, length = hypot(dx, dy);
  if (length < 1e-6) {
    *end_x = x;
    *end_y = y;
    return;
  }
  dx /= length;
  dy /= length;
  double base_x = x - dx * head, base_y = y - dy * head, half = head * 0.42;
  const double points[] = {x, y, base_x - dy * half, base_y + dx * half, base_x + dy * half, base_y - dx * half};
  pccl_svg_polyline(svg, points, 3, true, (pccl_svg_style){.fill = style.stroke, .opacity = style.opacity});
  *end_x = x - dx * head * 0.8;
  *end_y = y - dy * head * 0.8;
}

void pccl_svg_curve(pccl_svg *svg, double x1, double y1, double cx1, double cy1, double cx2, double cy2, double x2,
                    double y2, double head, pccl_svg_style style) {
  double end_x = x2, end_y = y2;
  if (head > 0) {
    arrow_head(svg, cx2, cy2, x2, y2, head, style, &end_x, &end_y);
  }
  const double points[] = {x1, y1, cx1, cy1, cx2, cy2, end_x, end_y};
  pccl_text_add(&svg->out, "<path d=\"");
  for (size_t i = 0; i < 4; i++) {
    pccl_text_bytes(&svg->out, i == 0 ? "M" : i == 1 ? "C" : " ", 1);
    write_number(&svg->out, points[2 * i]);
    pccl_text_bytes(&svg->out, " ", 1);
    write_number(&svg->out, points[2 * i + 1]);
  }
  pccl_text_bytes(&svg->out, "\"", 1);
  style.fill = NULL;
  write_style(&svg->out, style);
  end_element(&svg->out);
}

void pccl_svg_arrow(pccl_svg *svg, double x1, double y1, double x2, double y2, double head, pccl_svg_style style) {
  double end_x = x2, end_y = y2;
  arrow_head(svg, x1, y1, x2, y2, head, style, &end_x, &end_y);
  pccl_svg_line(svg, x1, y1, end_x, end_y, style);
}

void pccl_svg_text(pccl_svg *svg, double x, double y, pccl_svg_font font, const char *text) {
  static const char *const anchors[] = {"start", "middle", "end"};
  pccl_text *out = &svg->out;
  pccl_text_add(out, "<text");
  write_number_attribute(out, "x", x);
  write_number_attribute(out, "y", y);
  write_number_attribute(out, "font-size", font.size > 0 ? font.size : 12);
  if (font.anchor != PCCL_SVG_START) {
    write_text_attribute(out, "text-anchor", anchors[font.anchor]);
  }
  write_text_attribute(out, "fill", font.fill != NULL ? font.fill : "#1b1f24");
  if (font.bold) {
    write_text_attribute(out, "font-weight", "bold");
  }
  if (font.mono) {
    write_text_attribute(out, "font-family", "'DejaVu Sans Mono', Menlo, Consolas, monospace");
  }
  if (font.upwards) {
    pccl_text_add(out, " transform=\"rotate(-90 ");
    write_number(out, x);
    pccl_text_bytes(out, " ", 1);
    write_number(out, y);
    pccl_text_add(out, ")\"");
  }
  pccl_text_bytes(out, ">", 1);
  pccl_escape_xml(out, text);
  pccl_text_add(out, "</text>\n");
}

double pccl_svg_text_width(const char *text, double size) {
  double width = 0;
  for (const char *at = text; *at != '\0'; at++) {
    if (((unsigned char)*at & 0xC0) == 0x80) {
      continue; /* inside a UTF-8 character */
    }
    width += strchr("iljtfr.,:;|!'()[] ", *at) != NULL ? 0.31 : strchr("mwMW@", *at) != NULL ? 0.86 : 0.57;
  }
  return width * size;
}
