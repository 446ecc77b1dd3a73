/* Makes a plan of MSCCL XML. Sizes come from what the file declares (collective, nchunksperloop, ngpus), never from
 * the chunks that its steps happen to touch. nop steps become waits of the step after them, unless others wait for
 * them. Every step keeps its line of the XML. */
#include <string.h>

#include <polyccl/program.h>

#include "base/error.h"
#include "plan/builder.h"
#include "plan/formats.h"
#include "plan/plan.h"
#include "plan/xml.h"

typedef struct xml_reader {
  const pccl_xml *xml;
  polyccl_plan head;
  pccl_plan_builder builder;
  int32_t *gpu_of;   /* [ranks]: index into xml->gpu */
  int32_t *tb_of;    /* [xml tbs], a rank's part by id: index into xml->tb */
  bool *awaited;     /* [xml steps] */
  int32_t *new_step; /* [xml steps]: number in its thread block, -1: folded away */
} xml_reader;

static polyccl_location xml_location(const xml_reader *r, int32_t line) {
  return (polyccl_location){r->xml->file, line};
}

/* ---- shape ---- */

static void find_max_chunks(const pccl_xml *xml, int32_t *input, int32_t *output) {
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
static bool decide_inplace(const pccl_xml *xml, int32_t input, int32_t output) {
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

static polyccl_result set_plan_shape(xml_reader *r) {
  const pccl_xml *xml = r->xml;
  polyccl_plan *head = &r->head;
  int32_t input, output;
  find_max_chunks(xml, &input, &output);
  int32_t chunks = xml->chunks_per_loop;
  if (chunks == PCCL_XML_ABSENT) {
    chunks = input > output ? input : output;
  }
  if (chunks < 1) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, xml->line),
                        "the file gives neither nchunksperloop nor chunks");
  }
  head->chunks = head->chunks_out = 1;
  head->inplace = decide_inplace(xml, input, output);
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
    return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, xml->line),
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
static polyccl_result check_gpu_shape(xml_reader *r, const pccl_xml_gpu *gpu, polyccl_plan_rank *rank) {
  polyccl_plan_shape(&r->head, gpu->id, &rank->input, &rank->output);
  rank->scratch = gpu->scratch;
  /* In place a file may count the shared memory as either buffer. */
  int32_t larger = rank->input > rank->output ? rank->input : rank->output;
  int32_t input = r->head.inplace ? larger : rank->input, output = r->head.inplace ? larger : rank->output;
  if (gpu->inputs > input || gpu->outputs > output) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, gpu->line),
                        "i_chunks=\"%d\" o_chunks=\"%d\" is more than the %d and %d chunks that %s with "
                        "nchunksperloop=\"%d\" has",
                        gpu->inputs, gpu->outputs, rank->input, rank->output,
                        polyccl_collective_name(r->head.collective), r->xml->chunks_per_loop);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result set_plan_head(xml_reader *r) {
  const pccl_xml *xml = r->xml;
  polyccl_plan *head = &r->head;
  int32_t ranks = xml->ranks == PCCL_XML_ABSENT ? (int32_t)xml->gpu.len : xml->ranks;
  if (xml->gpu.len == 0 || (size_t)ranks != xml->gpu.len) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, xml->line),
                        "the file has %zu <gpu> elements, but ngpus=\"%d\"", xml->gpu.len, ranks);
  }
  *head = (polyccl_plan){.ranks = ranks,
                         .collective = xml->collective,
                         .protocol = xml->protocol,
                         .root = xml->root,
                         .peer = xml->peer,
                         .min_bytes = xml->min_bytes,
                         .redops = xml->redops};
  head->max_bytes = xml->max_bytes < INT64_MAX ? xml->max_bytes : 0;
  return set_plan_shape(r);
}

/* ---- ids to indices ---- */

static polyccl_result index_gpus(xml_reader *r) {
  const pccl_xml *xml = r->xml;
  memset(r->gpu_of, 0xff, (size_t)r->head.ranks * sizeof *r->gpu_of);
  for (size_t i = 0; i < xml->gpu.len; i++) {
    const pccl_xml_gpu *gpu = &xml->gpu.data[i];
    if (gpu->id >= r->head.ranks || r->gpu_of[gpu->id] >= 0) {
      return pccl_fail_at(
          POLYCCL_ERROR_INVALID, xml_location(r, gpu->line),
          gpu->id >= r->head.ranks ? "gpu id %d is out of range (0 to %d)" : "gpu id %d occurs twice (ids are 0 to %d)",
          gpu->id, r->head.ranks - 1);
    }
    r->gpu_of[gpu->id] = (int32_t)i;
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result check_tb_peer(const xml_reader *r, const pccl_xml_tb *tb, int32_t rank, int32_t peer) {
  if (peer >= r->head.ranks) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, tb->line), "peer %d is out of range (0 to %d)", peer,
                        r->head.ranks - 1);
  }
  if (peer == rank) {
    return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, tb->line), "rank %d has a connection to itself", rank);
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result index_tbs(xml_reader *r, const pccl_xml_gpu *gpu) {
  int32_t *by_id = r->tb_of + gpu->tb;
  memset(by_id, 0xff, (size_t)gpu->tbs * sizeof *by_id);
  for (int32_t t = gpu->tb; t < gpu->tb + gpu->tbs; t++) {
    const pccl_xml_tb *tb = &r->xml->tb.data[t];
    if (tb->id >= gpu->tbs || by_id[tb->id] >= 0) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, tb->line),
                          tb->id >= gpu->tbs ? "thread block id %d is out of range (ids are 0 to %d)"
                                             : "thread block id %d occurs twice (ids are 0 to %d)",
                          tb->id, gpu->tbs - 1);
    }
    by_id[tb->id] = t;
    PCCL_TRY(check_tb_peer(r, tb, gpu->id, tb->send));
    PCCL_TRY(check_tb_peer(r, tb, gpu->id, tb->recv));
  }
  return POLYCCL_SUCCESS;
}

/* The step that `step` of `gpu` waits for: its index in the file; NULL-like -1 when it does not exist. */
static int32_t find_awaited_step(const xml_reader *r, const pccl_xml_gpu *gpu, const pccl_xml_step *step) {
  if (step->dep_tb >= gpu->tbs) {
    return -1;
  }
  const pccl_xml_tb *tb = &r->xml->tb.data[r->tb_of[gpu->tb + step->dep_tb]];
  return step->dep_step < tb->steps ? tb->step + step->dep_step : -1;
}

static polyccl_result mark_awaited_steps(xml_reader *r, const pccl_xml_gpu *gpu) {
  for (int32_t t = gpu->tb; t < gpu->tb + gpu->tbs; t++) {
    const pccl_xml_tb *tb = &r->xml->tb.data[t];
    for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
      const pccl_xml_step *step = &r->xml->step.data[s];
      if (step->dep_tb < 0) {
        continue;
      }
      int32_t other = find_awaited_step(r, gpu, step);
      if (other < 0) {
        return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, step->line),
                            "depid=\"%d\" deps=\"%d\": rank %d has no such step", step->dep_tb, step->dep_step,
                            gpu->id);
      }
      r->awaited[other] = true;
    }
  }
  return POLYCCL_SUCCESS;
}

/* Numbers the steps that stay: all but nops for which nobody waits and that another step follows. */
static void number_kept_steps(xml_reader *r, const pccl_xml_tb *tb) {
  int32_t number = 0;
  for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
    bool folds = !pccl_op_moves(r->xml->step.data[s].op) && !r->awaited[s] && s + 1 < tb->step + tb->steps;
    r->new_step[s] = folds ? -1 : number++;
  }
}

/* ---- steps ---- */

static polyccl_result add_xml_wait(xml_reader *r, const pccl_xml_gpu *gpu, const pccl_xml_step *step) {
  if (step->dep_tb < 0) {
    return POLYCCL_SUCCESS;
  }
  return pccl_plan_builder_add_wait(&r->builder, step->dep_tb, r->new_step[find_awaited_step(r, gpu, step)]);
}

static polyccl_result add_xml_step(xml_reader *r, const pccl_xml_tb *tb, const pccl_xml_step *from,
                                   polyccl_step **made) {
  int32_t rank = r->xml->gpu.data[tb->gpu].id;
  int32_t channel = tb->channel < 0 ? 0 : tb->channel;
  polyccl_step *step;
  PCCL_TRY(pccl_plan_builder_add_step(&r->builder, &step));
  *made = step;
  step->op = from->op;
  step->src_buf = from->src_buf;
  step->dst_buf = from->dst_buf;
  step->src = from->src;
  step->dst = from->dst;
  step->count = from->count;
  pccl_plan_normalise(&r->head, rank, step);
  if (pccl_ops[from->op].receives) {
    PCCL_TRY(pccl_plan_builder_connection(&r->builder, tb->recv, rank, channel, &step->recv));
  }
  if (pccl_ops[from->op].sends) {
    PCCL_TRY(pccl_plan_builder_connection(&r->builder, rank, tb->send, channel, &step->send));
  }
  return pccl_plan_builder_location(&r->builder, 0, from->line, &step->location);
}

static polyccl_result add_xml_tb(xml_reader *r, const pccl_xml_gpu *gpu, const pccl_xml_tb *tb, int32_t last_copy) {
  int32_t folded = tb->step; /* the first step whose wait is still to be added */
  PCCL_TRY(pccl_plan_builder_add_tb(&r->builder, gpu->id));
  for (int32_t s = tb->step; s < tb->step + tb->steps; s++) {
    if (r->new_step[s] < 0) {
      continue;
    }
    polyccl_step *step;
    PCCL_TRY(add_xml_step(r, tb, &r->xml->step.data[s], &step));
    if (r->new_step[s] == 0 && last_copy >= 0) {
      PCCL_TRY(pccl_plan_builder_add_wait(&r->builder, gpu->tbs, last_copy));
    }
    for (; folded <= s; folded++) {
      PCCL_TRY(add_xml_wait(r, gpu, &r->xml->step.data[folded]));
    }
  }
  return POLYCCL_SUCCESS;
}

/* The <copy> elements of a rank as one thread block of copy steps, adjoining ones as one; its first steps elsewhere
 * wait for the last. In place most are copies of a chunk to itself, and vanish. */
static polyccl_result add_xml_copies(xml_reader *r, const pccl_xml_gpu *gpu, size_t *next, bool add, int32_t *last) {
  pccl_collective_spec spec = pccl_plan_spec(&r->head);
  pccl_xml_copy run = {.gpu = -1};
  int32_t count = 0;
  *last = -1;
  for (; *next < r->xml->copy.len && &r->xml->gpu.data[r->xml->copy.data[*next].gpu] == gpu; (*next)++) {
    const pccl_xml_copy *copy = &r->xml->copy.data[*next];
    polyccl_plan_rank shape;
    polyccl_plan_shape(&r->head, gpu->id, &shape.input, &shape.output);
    if (copy->input >= shape.input || copy->output >= shape.output) {
      return pccl_fail_at(POLYCCL_ERROR_INVALID, xml_location(r, copy->line),
                          "i_off=\"%d\" o_off=\"%d\" is out of range", copy->input, copy->output);
    }
    if (r->head.inplace && pccl_collective_cell(&spec, gpu->id, false, copy->input) ==
                               pccl_collective_cell(&spec, gpu->id, true, copy->output)) {
      continue;
    }
    if (run.gpu >= 0 && copy->input == run.input + count && copy->output == run.output + count) {
      count++;
      if (add) {
        r->builder.step.data[r->builder.step.len - 1].count = count;
      }
      continue;
    }
    if (add && *last < 0) {
      PCCL_TRY(pccl_plan_builder_add_tb(&r->builder, gpu->id));
    }
    run = *copy;
    count = 1;
    ++*last;
    if (add) {
      polyccl_step *step;
      PCCL_TRY(pccl_plan_builder_add_step(&r->builder, &step));
      step->op = POLYCCL_STEP_COPY;
      step->src_buf = POLYCCL_BUF_INPUT;
      step->dst_buf = POLYCCL_BUF_OUTPUT;
      step->src = copy->input;
      step->dst = copy->output;
      step->count = 1;
      PCCL_TRY(pccl_plan_builder_location(&r->builder, 0, copy->line, &step->location));
    }
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_xml_rank(xml_reader *r, const pccl_xml_gpu *gpu, const size_t *copies) {
  polyccl_plan_rank rank = {0};
  int32_t last_copy;
  size_t next = copies[gpu - r->xml->gpu.data];
  PCCL_TRY(check_gpu_shape(r, gpu, &rank));
  if (!pccl_vec_push(&r->builder.rank, rank)) {
    return pccl_no_memory("a plan");
  }
  PCCL_TRY(mark_awaited_steps(r, gpu));
  for (int32_t t = gpu->tb; t < gpu->tb + gpu->tbs; t++) {
    number_kept_steps(r, &r->xml->tb.data[t]);
  }
  PCCL_TRY(add_xml_copies(r, gpu, &next, false, &last_copy));
  for (int32_t t = 0; t < gpu->tbs; t++) {
    PCCL_TRY(add_xml_tb(r, gpu, &r->xml->tb.data[r->tb_of[gpu->tb + t]], last_copy));
  }
  next = copies[gpu - r->xml->gpu.data];
  return add_xml_copies(r, gpu, &next, true, &last_copy);
}

static polyccl_result add_xml_file(xml_reader *r) {
  char *file = pccl_strdup(r->xml->file);
  if (file == NULL || !pccl_vec_push(&r->builder.file, file)) {
    free(file);
    return pccl_no_memory("a plan");
  }
  return POLYCCL_SUCCESS;
}

static polyccl_result add_xml_ranks(xml_reader *r) {
  const pccl_xml *xml = r->xml;
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
  for (int32_t rank = 0; rank < r->head.ranks && result == POLYCCL_SUCCESS; rank++) {
    result = add_xml_rank(r, &xml->gpu.data[r->gpu_of[rank]], copies);
  }
  free(copies);
  return result;
}

static polyccl_result build_xml_plan(xml_reader *r, polyccl_plan **plan) {
  const pccl_xml *xml = r->xml;
  PCCL_TRY(set_plan_head(r));
  r->gpu_of = pccl_array((size_t)r->head.ranks, sizeof *r->gpu_of);
  r->tb_of = pccl_array(xml->tb.len, sizeof *r->tb_of);
  r->awaited = pccl_zeroed(xml->step.len, sizeof *r->awaited);
  r->new_step = pccl_array(xml->step.len, sizeof *r->new_step);
  if (r->gpu_of == NULL || r->tb_of == NULL || r->awaited == NULL || r->new_step == NULL) {
    return pccl_no_memory("a plan");
  }
  PCCL_TRY(index_gpus(r));
  for (size_t i = 0; i < xml->gpu.len; i++) {
    PCCL_TRY(index_tbs(r, &xml->gpu.data[i]));
  }
  PCCL_TRY(add_xml_file(r));
  PCCL_TRY(add_xml_ranks(r));
  polyccl_plan *made;
  PCCL_TRY(polyccl_plan_create(1, &made));
  polyccl_plan_rank *rank = made->rank;
  *made = r->head;
  made->rank = rank;
  pccl_plan_builder_finish(&r->builder, made);
  *plan = made;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_xml_plan_read(const char *name, const char *text, size_t length, polyccl_plan **plan) {
  pccl_xml xml = {0};
  xml_reader r = {.xml = &xml};
  polyccl_result result = pccl_xml_scan(name, text, length, &xml);
  if (result == POLYCCL_SUCCESS) {
    result = build_xml_plan(&r, plan);
  }
  if (result == POLYCCL_SUCCESS) {
    (*plan)->name = xml.name;
    xml.name = NULL;
  }
  free(r.gpu_of);
  free(r.tb_of);
  free(r.awaited);
  free(r.new_step);
  pccl_plan_builder_free(&r.builder);
  pccl_xml_free(&xml);
  return result;
}
