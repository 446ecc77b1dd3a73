/* Drawings as SVG 1.1 text, for papers and pages. Lengths in px, y downwards. Only presentation attributes are used, no
 * style sheets, scripts or markers, so that every converter draws the same. Output is reproducible byte for byte:
 * numbers have at most two decimals, the decimal sign is a point in every locale.
 *
 *     pccl_svg svg = {0};
 *     pccl_svg_open(&svg, 400, 300, "what it shows");
 *     pccl_svg_rect(&svg, 10, 10, 80, 20, 3, (pccl_svg_style){.fill = "#0072b2"});
 *     pccl_svg_text(&svg, 50, 24, (pccl_svg_font){.size = 12, .anchor = PCCL_SVG_MIDDLE}, name);
 *     result = pccl_svg_close(&svg);     svg.out.data is the document; free with pccl_text_free(&svg.out) */
#ifndef PCCL_BASE_SVG_H
#define PCCL_BASE_SVG_H

#include "base/file.h"

typedef struct pccl_svg {
  pccl_text out;
} pccl_svg;

typedef struct pccl_svg_style {
  const char *fill;   /* NULL: none */
  const char *stroke; /* NULL: none */
  double width;       /* of the stroke; 0: 1 */
  const char *dash;   /* "4 3"; NULL: solid */
  double opacity;     /* 0: 1 */
} pccl_svg_style;

typedef enum pccl_svg_anchor { PCCL_SVG_START = 0, PCCL_SVG_MIDDLE, PCCL_SVG_END } pccl_svg_anchor;

typedef struct pccl_svg_font {
  double size; /* 0: 12 */
  pccl_svg_anchor anchor;
  const char *fill;         /* NULL: near black */
  bool bold, mono, upwards; /* upwards: turned by 90 degrees */
} pccl_svg_font;

/* Begins a document with a white background; `title` is its accessible name. */
void pccl_svg_open(pccl_svg *svg, double width, double height, const char *title);
/* Ends the document. MEMORY if there was no memory for any part of it; svg->out is then empty. */
polyccl_result pccl_svg_close(pccl_svg *svg);

/* Begins a group, which shows `tooltip` under the pointer (NULL: none). */
void pccl_svg_group(pccl_svg *svg, const char *tooltip);
void pccl_svg_group_end(pccl_svg *svg);

void pccl_svg_rect(pccl_svg *svg, double x, double y, double width, double height, double radius, pccl_svg_style style);
void pccl_svg_circle(pccl_svg *svg, double x, double y, double radius, pccl_svg_style style);
void pccl_svg_line(pccl_svg *svg, double x1, double y1, double x2, double y2, pccl_svg_style style);
/* A cubic Bezier from (x1, y1) to (x2, y2) with two control points; `head`: length of the arrow head, 0: none. */
void pccl_svg_curve(pccl_svg *svg, double x1, double y1, double cx1, double cy1, double cx2, double cy2, double x2,
                    double y2, double head, pccl_svg_style style);
void pccl_svg_arrow(pccl_svg *svg, double x1, double y1, double x2, double y2, double head, pccl_svg_style style);
/* `points`: count pairs x, y. */
void pccl_svg_polyline(pccl_svg *svg, const double *points, size_t count, bool closed, pccl_svg_style style);
/* Draws text whose base line begins, is centred or ends at (x, y). */
void pccl_svg_text(pccl_svg *svg, double x, double y, pccl_svg_font font, const char *text);

/* Estimates the width of `text` in the sans-serif font, for layout. */
double pccl_svg_text_width(const char *text, double size);

#endif
