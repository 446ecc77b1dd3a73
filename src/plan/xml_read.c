/* Makes a plan of MSCCL XML. Sizes come from what the file declares (collective, nchunksperloop, ngpus), never from
 * the chunks that its steps happen to touch. nop steps become waits of the step after them, unless others wait for
 * them. Every step keeps its line of the XML. */
#include <string.h>

#include <polyccl/program.h>

#include "base/error.h"
#include "plan/formats.h"
#include "plan/parts.h"
#include "plan/plan.h"
#include "plan/xml.h"

typedef struct builder {
  const pccl_xml *xml;
  polyccl_plan head;
  pccl_parts parts;
  int32_t *gpu_of;   /* [ranks]: index into xml->gpu */
  int32_t *tb_of;    /* [xml tbs], a rank's part by id: index into xml->tb */
  bool *awaited;     /* [xml steps] */
  int32_t *new_step; /* [xml steps]: number in its thread block, -1: folded away */
} builder;

static polyccl_location at_line(const builder *b, int32_t line) { return (polyccl_location){b->xml->file, line}; }

/* ---- shape ---- */

static void most_chunks(const pccl_xml *xml, int32_t *input, int32_t *output) {
  *input = *output = 0;
  for (size_t i = 0; i < xml->gpu.len; i++) {
    *input = xml->gpu.data[i].inputs > *input ? xml->gpu.data[i].inputs : *input;
    *output = xml->gpu.data[i].outputs > *output ? xml->gpu.data[i].outputs : *output;
  }
}

/* A rank with two buffers. */
static bool declares_both(const pccl_xml *xml) {
  for (size_t i = 0; i < xml->gpu.len; i++) {
    if (xml->gpu.data[i].inputs > 0 && xml->gpu.data[i].outputs > 0) {
      return true;
    }
  }
  return false;
}

/* A plan that says nothing of its place, or that it fits both: in place if one of the buffers is never declared. A
 * custom plan that claims to be in place and uses two buffers (the public tools write such) is not: what one memory
 * would mean is not defined for it. */
static bool is_inplace(const pccl_xml *xml, int32_t input, int32_t output) {
  bool in = xml->inplace == 1, out = xml->out_of_place == 1;
  if (in && xml->collective == POLYCCL_CUSTOM && declares_both(xml)) {
    return false;
  }
  if (in != out) {
    return in;
  }
  if (xml->inplace == 0 && xml->out_of_place == PCCL_XML_ABSENT) {
    return false;
  }
  return xml->collective != POLYCCL_SENDRECV && (input == 0) != (output == 0);
}

static polyccl_result set_shape(builder *b) {
  const pccl_xml *xml = b->xml;
  polyccl_plan *head = &b->head;
  int32_t input, output;
  most_chunks(xml, &input, &output);
  int32_t chunks = xml->chunks_per_loop;
  if (chunks == PCCL_XML_ABSENT) {
    chunks = input > output ? input : output;
  }
  if (chunks < 1) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, xml->line), "neither nchunksperloop nor chunks are given");
  }
  head->chunks = head->chunks_out = 1;
  head->inplace = is_inplace(xml, input, output);
  pccl_collective_spec spec = pccl_plan_spec(head);
  polyccl_result result = pccl_collective_validate(&spec);
  if (result != POLYCCL_SUCCESS) {
    return pccl_prefix(result, "%s:%d: ", xml->file, xml->line);
  }
  int unit_in, unit_out;
  pccl_collective_shape(&spec, &unit_in, &unit_out);
  int32_t blocks = unit_in > unit_out ? unit_in : unit_out;
  bool rooted_blocks = head->collective == POLYCCL_GATHER || head->collective == POLYCCL_SCATTER;
  if (rooted_blocks && (input > output ? input : output) == (int64_t)chunks * blocks) {
    blocks = 1; /* as executors count for these; else the file counts the larger buffer */
  }
  if (chunks % blocks != 0) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, xml->line),
                        "nchunksperloop=\"%d\" is not a multiple of the %d blocks of %s on %d ranks", chunks, blocks,
                        polyccl_collective_name(head->collective), head->ranks);
  }
  head->chunks = head->chunks_out = chunks / blocks;
  if (head->collective == POLYCCL_CUSTOM && !head->inplace) {
    head->chunks = input > 0 ? input : chunks;
    head->chunks_out = output > 0 ? output : chunks;
  }
  return POLYCCL_SUCCESS;
}

/* No rank may declare more than the collective has. */
static polyccl_result check_gpu_shape(builder *b, const pccl_xml_gpu *gpu, polyccl_plan_rank *rank) {
  polyccl_plan_shape(&b->head, gpu->id, &rank->input, &rank->output);
  rank->scratch = gpu->scratch;
  /* In place a file may count the shared memory as either buffer. */
  int32_t larger = rank->input > rank->output ? rank->input : rank->output;
  int32_t input = b->head.inplace ? larger : rank->input, output = b->head.inplace ? larger : rank->output;
  if (gpu->inputs > input || gpu->outputs > output) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, gpu->line),
                        "i_chunks=\"%d\" o_chunks=\"%d\" is more than the %d and %d chunks that %s with "
                        "nchunksperloop=\"%d\" has",
                        gpu->inputs, gpu->outputs, rank->input, rank->output,
                        polyccl_collective_name(b->head.collective), b->xml->chunks_per_loop);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result set_head(builder *b) {
  const pccl_xml *xml = b->xml;
  polyccl_plan *head = &b->head;
  int32_t ranks = xml->ranks == PCCL_XML_ABSENT ? (int32_t)xml->gpu.len : xml->ranks;
  if (xml->gpu.len == 0 || (size_t)ranks != xml->gpu.len) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, xml->line), "the file has %zu <gpu> elements, ngpus=\"%d\"",
                        xml->gpu.len, ranks);
  }
  *head = (polyccl_plan){.ranks = ranks,
                         .collective = xml->collective,
                         .protocol = xml->protocol,
                         .root = xml->root,
                         .peer = xml->peer,
                         .min_bytes = xml->min_bytes,
                         .redops = xml->redops};
  head->max_bytes = xml->max_bytes < INT64_MAX ? xml->max_bytes : 0;
  return set_shape(b);
}

/* ---- ids to indices ---- */

static polyccl_result index_gpus(builder *b) {
  const pccl_xml *xml = b->xml;
  memset(b->gpu_of, 0xff, (size_t)b->head.ranks * sizeof *b->gpu_of);
  for (size_t i = 0; i < xml->gpu.len; i++) {
    const pccl_xml_gpu *gpu = &xml->gpu.data[i];
    if (gpu->id >= b->head.ranks || b->gpu_of[gpu->id] >= 0) {
      return pccl_fail_at(
          POLYCCL_ERROR_INVALID, at_line(b, gpu->line),
          gpu->id >= b->head.ranks ? "gpu id %d is out of range (0 to %d)" : "a second gpu with id %d (of 0 to %d)",
          gpu->id, b->head.ranks - 1);
    }
    b->gpu_of[gpu->id] = (int32_t)i;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_peer(const builder *b, const pccl_xml_tb *tb, int32_t rank, int32_t peer) {
  if (peer >= b->head.ranks) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, tb->line), "peer %d is out of range (0 to %d)", peer,
                        b->head.ranks - 1);
  }
  if (peer == rank) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, tb->line), "rank %d has a connection to itself", rank);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result index_tbs(builder *b, const pccl_xml_gpu *gpu) {
  int32_t *by_id = b->tb_of + gpu->tb;
  memset(by_id, 0xff, (size_t)gpu->tbs * sizeof *by_id);
  for (int32_t t = gpu->tb; t < gpu->tb + gpu->tbs; t++) {
    const pccl_xml_tb *tb = &b->xml->tb.data[t];
    if (tb->id >= gpu->tbs || by_id[tb->id] >= 0) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, tb->line),
                          tb->id >= gpu->tbs ? "thread block id %d: ids must be 0 to %d without a gap"
                                             : "a second thread block with id %d (of 0 to %d)",
                          tb->id, gpu->tbs - 1);
    }
    by_id[tb->id] = t;
    PCCL_TRY(check_peer(b, tb, gpu->id, tb->send));
    PCCL_TRY(check_peer(b, tb, gpu->id, tb->recv));
  }
  return POLYCCL_SUCCESS;
}

/* The step that `step` of `gpu` waits for: its index in the file; NULL-like -1 when it does not exist. */
static int32_t awaited_step(const builder *b, const pccl_xml_gpu *gpu, const pccl_xml_step *step) {
  if (step->dep_tb >= gpu->tbs) {
    return -1;
  }
  const pccl_xml_tb *tb = &b->xml->tb.data[b->tb_of[gpu->tb + step->dep_tb]];
  return step->dep_step < tb->steps ? tb->step + step->dep_step : -1;
}

static polyccl_result mark_awaited(builder *b, const pccl_xml_gpu *gpu) {
  for (int32_t t = gpu->tb; t < gpu->tb + gpu->tbs; t++) {
    const pccl_xml_tb *tb = &b->xml->tb.data[t];
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      const pccl_xml_step *step = &b->xml->step.data[s];
      if (step->dep_tb < 0) {
        continue;
      }
      int32_t other = awaited_step(b, gpu, step);
      if (other < 0) {
        return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, step->line),
                            "depid=\"%d\" deps=\"%d\": rank %d has no such step", step->dep_tb, step->dep_step,
                            gpu->id);
      }
      b->awaited[other] = true;
    }
  }
  return POLYCCL_SUCCESS;
}

/* Numbers the steps that stay: all but nops for which nobody waits and that another step follows. */
static void number_steps(builder *b, const pccl_xml_tb *tb) {
  int32_t number = 0;
  for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
    bool folds = b->xml->step.data[s].op == POLYCCL_STEP_NOP && !b->awaited[s] && s + 1 < tb->step + tb->steps;
    b->new_step[s] = folds ? -1 : number++;
  }
}

/* ---- steps ---- */

static polyccl_result add_wait(builder *b, const pccl_xml_gpu *gpu, const pccl_xml_step *step) {
  if (step->dep_tb < 0) {
    return POLYCCL_SUCCESS;
  }
  return pccl_parts_wait(&b->parts, step->dep_tb, b->new_step[awaited_step(b, gpu, step)]);
}

static polyccl_result add_step(builder *b, const pccl_xml_tb *tb, const pccl_xml_step *from, polyccl_step **made) {
  int32_t rank = b->xml->gpu.data[tb->gpu].id;
  int32_t channel = tb->channel < 0 ? 0 : tb->channel;
  polyccl_step *step;
  PCCL_TRY(pccl_parts_step(&b->parts, &step));
  *made = step;
  step->op = from->op;
  step->src_buf = from->src_buf;
  step->dst_buf = from->dst_buf;
  step->src = from->src;
  step->dst = from->dst;
  step->count = from->count;
  pccl_plan_normalise(&b->head, rank, step);
  if (pccl_ops[from->op].receives) {
    PCCL_TRY(pccl_parts_connection(&b->parts, tb->recv, rank, channel, &step->recv));
  }
  if (pccl_ops[from->op].sends) {
    PCCL_TRY(pccl_parts_connection(&b->parts, rank, tb->send, channel, &step->send));
  }
  return pccl_parts_location(&b->parts, 0, from->line, &step->location);
}

static polyccl_result add_tb(builder *b, const pccl_xml_gpu *gpu, const pccl_xml_tb *tb, int32_t last_copy) {
  int32_t folded = tb->step; /* the first step whose wait is still to be added */
  PCCL_TRY(pccl_parts_tb(&b->parts, gpu->id));
  for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
    if (b->new_step[s] < 0) {
      continue;
    }
    polyccl_step *step;
    PCCL_TRY(add_step(b, tb, &b->xml->step.data[s], &step));
    if (b->new_step[s] == 0 && last_copy >= 0) {
      PCCL_TRY(pccl_parts_wait(&b->parts, gpu->tbs, last_copy));
    }
    for (; folded <= s; folded++) {
      PCCL_TRY(add_wait(b, gpu, &b->xml->step.data[folded]));
    }
  }
  return POLYCCL_SUCCESS;
}

/* The <copy> elements of a rank as one thread block of copy steps, adjoining ones as one; its first steps elsewhere
 * wait for the last. In place most are copies of a chunk to itself, and vanish. */
static polyccl_result list_copies(builder *b, const pccl_xml_gpu *gpu, size_t *next, bool add, int32_t *last) {
  pccl_collective_spec spec = pccl_plan_spec(&b->head);
  pccl_xml_copy run = {.gpu = -1};
  int32_t count = 0;
  *last = -1;
  for (; *next < b->xml->copy.len && &b->xml->gpu.data[b->xml->copy.data[*next].gpu] == gpu; (*next)++) {
    const pccl_xml_copy *copy = &b->xml->copy.data[*next];
    polyccl_plan_rank shape;
    polyccl_plan_shape(&b->head, gpu->id, &shape.input, &shape.output);
    if (copy->input >= shape.input || copy->output >= shape.output) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, at_line(b, copy->line), "i_off=\"%d\" o_off=\"%d\" is out of range",
                          copy->input, copy->output);
    }
    if (b->head.inplace && pccl_collective_cell(&spec, gpu->id, false, copy->input) ==
                               pccl_collective_cell(&spec, gpu->id, true, copy->output)) {
      continue;
    }
    if (run.gpu >= 0 && copy->input == run.input + count && copy->output == run.output + count) {
      count++;
      if (add) {
        b->parts.step.data[b->parts.step.len - 1].count = count;
      }
      continue;
    }
    if (add && *last < 0) {
      PCCL_TRY(pccl_parts_tb(&b->parts, gpu->id));
    }
    run = *copy;
    count = 1;
    ++*last;
    if (add) {
      polyccl_step *step;
      PCCL_TRY(pccl_parts_step(&b->parts, &step));
      step->op = POLYCCL_STEP_COPY;
      step->src_buf = POLYCCL_BUF_INPUT;
      step->dst_buf = POLYCCL_BUF_OUTPUT;
      step->src = copy->input;
      step->dst = copy->output;
      step->count = 1;
      PCCL_TRY(pccl_parts_location(&b->parts, 0, copy->line, &step->location));
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_rank(builder *b, const pccl_xml_gpu *gpu, const size_t *copies) {
  polyccl_plan_rank rank = {0};
  int32_t last_copy;
  size_t next = copies[gpu - b->xml->gpu.data];
  PCCL_TRY(check_gpu_shape(b, gpu, &rank));
  if (!pccl_vec_push(&b->parts.rank, rank)) {
    return pccl_no_memory("a plan");
  }
  PCCL_TRY(mark_awaited(b, gpu));
  for (int32_t t = gpu->tb; t < gpu->tb + gpu->tbs; t++) {
    number_steps(b, &b->xml->tb.data[t]);
  }
  PCCL_TRY(list_copies(b, gpu, &next, false, &last_copy));
  for (int32_t t = 0; t < gpu->tbs; t++) {
    PCCL_TRY(add_tb(b, gpu, &b->xml->tb.data[b->tb_of[gpu->tb + t]], last_copy));
  }
  next = copies[gpu - b->xml->gpu.data];
  return list_copies(b, gpu, &next, true, &last_copy);
}

static polyccl_result add_file(builder *b) {
  char *file = pccl_strdup(b->xml->file);
  if (file == NULL || !pccl_vec_push(&b->parts.file, file)) {
    free(file);
    return pccl_no_memory("a plan");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_ranks(builder *b) {
  const pccl_xml *xml = b->xml;
  size_t *copies = pccl_zeroed(xml->gpu.len, sizeof *copies); /* where each gpu's begin */
  if (copies == NULL) {
    return pccl_no_memory("a plan");
  }
  for (size_t i = 0, next = 0; i < xml->gpu.len; i++) {
    copies[i] = next;
    while (next < xml->copy.len && (size_t)xml->copy.data[next].gpu == i) {
      next++;
    }
  }
  polyccl_result result = POLYCCL_SUCCESS;
  for (int32_t r = 0; r < b->head.ranks && result == POLYCCL_SUCCESS; r++) {
    result = add_rank(b, &xml->gpu.data[b->gpu_of[r]], copies);
  }
  free(copies);
  return result;
}

static polyccl_result build(builder *b, polyccl_plan **plan) {
  const pccl_xml *xml = b->xml;
  PCCL_TRY(set_head(b));
  b->gpu_of = pccl_array((size_t)b->head.ranks, sizeof *b->gpu_of);
  b->tb_of = pccl_array(xml->tb.len, sizeof *b->tb_of);
  b->awaited = pccl_zeroed(xml->step.len, sizeof *b->awaited);
  b->new_step = pccl_array(xml->step.len, sizeof *b->new_step);
  if (b->gpu_of == NULL || b->tb_of == NULL || b->awaited == NULL || b->new_step == NULL) {
    return pccl_no_memory("a plan");
  }
  PCCL_TRY(index_gpus(b));
  for (size_t i = 0; i < xml->gpu.len; i++) {
    PCCL_TRY(index_tbs(b, &xml->gpu.data[i]));
  }
  PCCL_TRY(add_file(b));
  PCCL_TRY(add_ranks(b));
  polyccl_plan *made;
  PCCL_TRY(polyccl_plan_create(1, &made));
  polyccl_plan_rank *rank = made->rank;
  *made = b->head;
  made->rank = rank;
  pccl_parts_finish(&b->parts, made);
  *plan = made;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_xml_plan_read(const char *name, const char *text, size_t length, polyccl_plan **plan) {
  pccl_xml xml = {0};
  builder b = {.xml = &xml};
  polyccl_result result = pccl_xml_scan(name, text, length, &xml);
  if (result == POLYCCL_SUCCESS) {
    result = build(&b, plan);
  }
  if (result == POLYCCL_SUCCESS) {
    (*plan)->name = xml.name;
    xml.name = NULL;
  }
  free(b.gpu_of);
  free(b.tb_of);
  free(b.awaited);
  free(b.new_step);
  pccl_parts_free(&b.parts);
  pccl_xml_free(&xml);
  return result;
}
