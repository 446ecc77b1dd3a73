/* Pictures for papers, as SVG: a trace over time; the thread blocks of a plan and their waits; the route of a chunk. */
#ifndef PCCL_VIEW_PICTURES_H
#define PCCL_VIEW_PICTURES_H

#include <polyccl/plan.h>
#include <polyccl/trace.h>

#include "base/svg.h"

/* Each of these leaves a finished document in svg->out, and nothing in it after a failure. `rank` -1: all ranks. */

polyccl_result pccl_picture_timeline(pccl_svg *svg, const polyccl_trace *trace, int rank);

/* Thread blocks as rows, steps as boxes in the columns of pccl_schedule; arrows for messages, dashed ones for waits.
 * One rank: with operands and source lines, peers by name. LIMIT where it would be too large to read. */
polyccl_result pccl_picture_plan(pccl_svg *svg, const polyccl_plan *plan, int rank);

/* Where chunk `chunk` of the larger buffer (output, or the input where that is larger) goes: a graph, from left to
 * right, of the places that hold it or a part of it. */
polyccl_result pccl_picture_route(pccl_svg *svg, const polyccl_plan *plan, int chunk);

/* Draws colour samples with the names of the ops in `ops` and the states in `states` (a bit each); returns the width.
 */
double pccl_picture_legend(pccl_svg *svg, double x, double y, uint32_t ops, uint32_t states);

/* Near white on dark colours, near black on light ones. */
const char *pccl_ink_on(const char *color);

#endif
