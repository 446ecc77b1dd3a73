#include <stdio.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "view/paint.h"
#include "view/pictures.h"

const char *pccl_ink_on(const char *color) {
  unsigned long rgb = strtoul(color + 1, NULL, 16);
  double light = 0.299 * (double)(rgb >> 16 & 255) + 0.587 * (double)(rgb >> 8 & 255) + 0.114 * (double)(rgb & 255);
  return light > 150 ? "#15181c" : "#ffffff";
}

double pccl_picture_legend(pccl_svg *svg, double x, double y, uint32_t ops, uint32_t states) {
  double start = x;
  for (int op = 0; op <= POLYCCL_STEP_OP_COUNT; op++) {
    if ((ops >> op & 1) == 0) {
      continue;
    }
    const char *name = op < POLYCCL_STEP_OP_COUNT ? pccl_ops[op].name : "other";
    pccl_svg_rect(svg, x, y - 10, 14, 12, 2, (pccl_svg_style){.fill = pccl_op_paint[op].light});
    pccl_svg_text(svg, x + 19, y, (pccl_svg_font){.size = 12}, name);
    x += 19 + pccl_svg_text_width(name, 12) + 18;
  }
  for (int state = 1; state < POLYCCL_TRACE_STATE_COUNT; state++) {
    if ((states >> state & 1) == 0) {
      continue;
    }
    pccl_svg_rect(svg, x, y - 7, 14, 5, 1, (pccl_svg_style){.fill = pccl_state_paint[state].light});
    pccl_svg_text(svg, x + 19, y, (pccl_svg_font){.size = 12}, pccl_state_paint[state].title);
    x += 19 + pccl_svg_text_width(pccl_state_paint[state].title, 12) + 18;
  }
  return x - start;
}
