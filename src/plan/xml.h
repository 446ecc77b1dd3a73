/* MSCCL XML as it stands in the file: what xml_scan.c collects with expat and xml_read.c makes a plan of. Numbers are
 * checked for form only. */
#ifndef PCCL_PLAN_XML_H
#define PCCL_PLAN_XML_H

#include <polyccl/plan.h>

#include "base/vec.h"

enum { PCCL_XML_ABSENT = -2 }; /* an attribute that is not there; -1 is a value of the format */

typedef struct pccl_xml_step {
  uint8_t op, src_buf, dst_buf;
  int32_t src, dst, count;
  int32_t dep_tb, dep_step; /* -1: none */
  int32_t line;
} pccl_xml_step;

typedef struct pccl_xml_tb {
  int32_t gpu; /* index into gpu */
  int32_t id, send, recv, channel;
  int32_t step, steps;
  int32_t line;
} pccl_xml_tb;

/* <copy>: input chunk to output chunk, before the rank's steps. */
typedef struct pccl_xml_copy {
  int32_t gpu, input, output, line;
} pccl_xml_copy;

typedef struct pccl_xml_gpu {
  int32_t id, inputs, outputs, scratch;
  int32_t tb, tbs; /* in file order */
  int32_t line;
} pccl_xml_gpu;

typedef struct pccl_xml {
  const char *file;
  char *name;
  polyccl_collective collective;
  polyccl_protocol protocol;
  int32_t ranks, chunks_per_loop, inplace, out_of_place; /* or PCCL_XML_ABSENT */
  int32_t root, peer;
  uint64_t min_bytes, max_bytes;
  uint32_t redops;
  int32_t line; /* of <algo> */
  bool seen;
  PCCL_VEC(pccl_xml_gpu) gpu;
  PCCL_VEC(pccl_xml_tb) tb;
  PCCL_VEC(pccl_xml_step) step;
  PCCL_VEC(pccl_xml_copy) copy;
} pccl_xml;

polyccl_result pccl_xml_scan(const char *file, const char *text, size_t length, pccl_xml *xml);
void pccl_xml_free(pccl_xml *xml);

#endif
