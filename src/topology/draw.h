/* The picture of a topology. layout.c computes where each node stands, draw.c draws it.
 *
 * Switches between machines stand above, in rows by their distance from the machines; a machine is a box. In
 * it stand, from the top, its NICs and hosts, its PCIe switches by distance from the hosts, its devices, and the
 * switches of its fabric. Only the first few machines of a big topology are drawn; the rest are counted. */
#ifndef PCCL_TOPOLOGY_DRAW_H
#define PCCL_TOPOLOGY_DRAW_H

#include "topology/topology.h"

enum {
  PCCL_DRAW_MACHINES = 4, /* boxes side by side */
  PCCL_DRAW_DEVICES = 64, /* in a box; the rest are counted */
  PCCL_DRAW_OUTSIDE = 16, /* switches in a row above */
  PCCL_DRAW_NODE_WIDTH = 58,
  PCCL_DRAW_NODE_HEIGHT = 30,
  PCCL_DRAW_PITCH = 66,
  PCCL_DRAW_ROW = 84
};

typedef struct pccl_node_place {
  double x, y; /* centre */
  double width;
  bool drawn;
} pccl_node_place;

typedef struct pccl_box {
  double x, y, width, height;
  int hidden; /* nodes of the machine that are not drawn */
} pccl_box;

typedef struct pccl_layout {
  pccl_node_place *place; /* [nodes] */
  pccl_box box[PCCL_DRAW_MACHINES];
  int boxes;
  double width, height;
} pccl_layout;

polyccl_result pccl_layout_create(const polyccl_topology *topology, pccl_layout *layout);
void pccl_layout_destroy(pccl_layout *layout);

/* The height of the arc between two devices of a row that are `distance` apart. */
double pccl_arc_depth(double distance);

#endif
