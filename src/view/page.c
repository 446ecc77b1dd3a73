#include "view/page.h"

#include <string.h>

#include "base/error.h"
#include "base/escape.h"
#include "plan/plan.h"
#include "view/paint.h"
#include "view/thin.h"

/* A page with so many records has about 250 MB, which browsers can still open. */
enum { MAX_RECORDS = 4000000, MAX_SAMPLES = 400000 };

extern const unsigned char pccl_page_html[], pccl_page_style[], pccl_page_script[];
extern const size_t pccl_page_html_size, pccl_page_style_size, pccl_page_script_size;

/* ---- columns ---- */

/* The bits of an element of `type` ('f8', 'i4', 'u4', 'u1'), from a field at `at`. */
typedef struct column {
  const char *name, *type;
  size_t offset, bytes; /* of the field: 1, 4, 8 */
} column;

#define COLUMN(name, type, record, field) \
  { name, type, offsetof(record, field), sizeof(((record *)0)->field) }

static uint64_t bits_of(const unsigned char *field, size_t bytes) {
  uint8_t u1;
  uint32_t u4;
  uint64_t u8;
  switch (bytes) {
    case 1: return memcpy(&u1, field, 1), u1;
    case 4: return memcpy(&u4, field, 4), u4;
    default: return memcpy(&u8, field, 8), u8;
  }
}

/* Encodes integers as base64, little-endian on every machine. */
typedef struct encoder {
  pccl_text *out;
  char buffer[4096];
  size_t used;
  uint32_t pending;
  int pending_bytes;
} encoder;

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_digit(encoder *e, char digit) {
  e->buffer[e->used++] = digit;
  if (e->used == sizeof e->buffer) {
    pccl_text_bytes(e->out, e->buffer, e->used);
    e->used = 0;
  }
}

static void encode_bits(encoder *e, uint64_t bits, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    e->pending = e->pending << 8 | (bits >> (8 * i) & 0xFF);
    if (++e->pending_bytes == 3) {
      for (int shift = 18; shift >= 0; shift -= 6) {
        put_digit(e, digits[e->pending >> shift & 63]);
      }
      e->pending = 0;
      e->pending_bytes = 0;
    }
  }
}

static void end_encoding(encoder *e) {
  if (e->pending_bytes > 0) {
    uint32_t bits = e->pending << (e->pending_bytes == 1 ? 16 : 8);
    put_digit(e, digits[bits >> 18 & 63]);
    put_digit(e, digits[bits >> 12 & 63]);
    put_digit(e, e->pending_bytes == 1 ? '=' : digits[bits >> 6 & 63]);
    put_digit(e, '=');
  }
  pccl_text_bytes(e->out, e->buffer, e->used);
}

static void add_column(pccl_text *out, const column *c, const void *records, size_t count, size_t stride) {
  encoder e = {.out = out};
  pccl_text_add(out, "\"%s\":\"%s:", c->name, c->type);
  for (size_t i = 0; i < count; i++) {
    encode_bits(&e, bits_of((const unsigned char *)records + i * stride + c->offset, c->bytes), c->bytes);
  }
  end_encoding(&e);
  pccl_text_bytes(out, "\"", 1);
}

/* An object of columns, left open for more. */
static void add_columns(pccl_text *out, const char *name, const column *columns, size_t column_count,
                        const void *records, size_t count, size_t stride) {
  pccl_text_add(out, ",\n\"%s\":{", name);
  for (size_t i = 0; i < column_count; i++) {
    pccl_text_bytes(out, ",", i > 0 ? 1 : 0);
    add_column(out, &columns[i], records, count, stride);
  }
}

/* ---- a trace ---- */

static void add_blocks(pccl_text *out, const polyccl_trace *trace) {
  static const column columns[] = {COLUMN("rank", "i4", polyccl_trace_block, rank),
                                   COLUMN("tb", "i4", polyccl_trace_block, tb)};
  add_columns(out, "block", columns, sizeof columns / sizeof columns[0], trace->block, trace->blocks,
              sizeof *trace->block);
  encoder e = {.out = out}; /* where each block's records start, and where the last one's end */
  pccl_text_add(out, ",\"record\":\"u4:");
  for (size_t i = 0; i < trace->blocks; i++) {
    encode_bits(&e, trace->block[i].record, 4);
  }
  encode_bits(&e, trace->records, 4);
  end_encoding(&e);
  pccl_text_add(out, "\"}");
}

static void add_steps(pccl_text *out, const polyccl_trace *trace) {
  static const column columns[] = {COLUMN("block", "i4", polyccl_trace_step, block),
                                   COLUMN("number", "i4", polyccl_trace_step, number),
                                   COLUMN("op", "u1", polyccl_trace_step, op),
                                   COLUMN("srcBuf", "u1", polyccl_trace_step, src_buf),
                                   COLUMN("dstBuf", "u1", polyccl_trace_step, dst_buf),
                                   COLUMN("src", "i4", polyccl_trace_step, src),
                                   COLUMN("dst", "i4", polyccl_trace_step, dst),
                                   COLUMN("count", "i4", polyccl_trace_step, count),
                                   COLUMN("recvRank", "i4", polyccl_trace_step, recv_rank),
                                   COLUMN("recvChannel", "i4", polyccl_trace_step, recv_channel),
                                   COLUMN("sendRank", "i4", polyccl_trace_step, send_rank),
                                   COLUMN("sendChannel", "i4", polyccl_trace_step, send_channel),
                                   COLUMN("wait", "i4", polyccl_trace_step, wait),
                                   COLUMN("waits", "i4", polyccl_trace_step, waits),
                                   COLUMN("place", "i4", polyccl_trace_step, place)};
  add_columns(out, "step", columns, sizeof columns / sizeof columns[0], trace->step, trace->steps, sizeof *trace->step);
  pccl_text_bytes(out, "}", 1);
}

static void add_records(pccl_text *out, const polyccl_trace *trace) {
  static const column columns[] = {
      COLUMN("begin", "f8", polyccl_trace_record, begin),      COLUMN("end", "f8", polyccl_trace_record, end),
      COLUMN("step", "i4", polyccl_trace_record, step),        COLUMN("batch", "i4", polyccl_trace_record, batch),
      COLUMN("message", "i4", polyccl_trace_record, message),  COLUMN("state", "u1", polyccl_trace_record, state),
      COLUMN("critical", "u1", polyccl_trace_record, critical)};
  add_columns(out, "record", columns, sizeof columns / sizeof columns[0], trace->record, trace->records,
              sizeof *trace->record);
  pccl_text_bytes(out, "}", 1);
}

static void add_links(pccl_text *out, const polyccl_trace *trace, const pccl_thinned *thinned) {
  static const column columns[] = {COLUMN("time", "f8", polyccl_trace_sample, time),
                                   COLUMN("rate", "f8", polyccl_trace_sample, rate)};
  add_columns(out, "sample", columns, sizeof columns / sizeof columns[0], thinned->samples.data, thinned->samples.len,
              sizeof *thinned->samples.data);
  pccl_text_bytes(out, "}", 1);
  pccl_text_add(out, ",\n\"links\":[");
  for (size_t i = 0; i < trace->links; i++) {
    const polyccl_trace_link *link = &trace->link[i];
    pccl_text_add(out, i > 0 ? ",{\"name\":" : "{\"name\":");
    pccl_escape_json(out, link->name);
    pccl_text_add(out, ",\"bandwidth\":");
    pccl_json_number(out, link->bandwidth);
    pccl_text_add(out, ",\"sample\":%zu,\"samples\":%zu}", thinned->first[i],
                  thinned->first[i + 1] - thinned->first[i]);
  }
  pccl_text_add(out, "]");
}

static void add_trace(pccl_text *out, const polyccl_trace *trace, const pccl_thinned *thinned) {
  pccl_text_add(out, "{\"name\":");
  pccl_escape_json(out, trace->name);
  pccl_text_add(out, ",\"source\":");
  pccl_escape_json(out, trace->source);
  pccl_text_add(out, ",\"duration\":");
  pccl_json_number(out, trace->duration);
  add_blocks(out, trace);
  add_steps(out, trace);
  add_records(out, trace);
  add_links(out, trace, thinned);
  encoder e = {.out = out};
  pccl_text_add(out, ",\n\"wait\":\"i4:");
  for (size_t i = 0; i < trace->waits; i++) {
    encode_bits(&e, (uint32_t)trace->wait[i].tb, 4);
    encode_bits(&e, (uint32_t)trace->wait[i].step, 4);
  }
  end_encoding(&e);
  pccl_text_add(out, "\",\n\"places\":[");
  for (size_t i = 0; i < trace->places; i++) {
    pccl_text_bytes(out, ",", i > 0 ? 1 : 0);
    pccl_escape_json(out, trace->place[i]);
  }
  pccl_text_add(out, "]}");
}

/* ---- the page ---- */

static void add_paint(pccl_text *out, const char *name, const pccl_paint *paint) {
  pccl_text_add(out, "{\"name\":\"%s\",\"title\":\"%s\",\"light\":\"%s\",\"dark\":\"%s\"", name, paint->title,
                paint->light, paint->dark);
}

static void add_paints(pccl_text *out) {
  pccl_text_add(out, ",\n\"ops\":[");
  for (int op = 0; op <= POLYCCL_STEP_OP_COUNT; op++) {
    const pccl_op_traits none = {.name = "other"}, *t = op < POLYCCL_STEP_OP_COUNT ? &pccl_ops[op] : &none;
    pccl_text_bytes(out, ",", op > 0 ? 1 : 0);
    add_paint(out, t->name, &pccl_op_paint[op]);
    pccl_text_add(out, ",\"known\":%s,\"receives\":%s,\"sends\":%s,\"reads\":%s,\"writes\":%s,\"readsDst\":%s}",
                  op < POLYCCL_STEP_OP_COUNT ? "true" : "false", t->receives ? "true" : "false",
                  t->sends ? "true" : "false", t->reads_src ? "true" : "false", t->writes_dst ? "true" : "false",
                  t->reads_dst ? "true" : "false");
  }
  pccl_text_add(out, "],\n\"states\":[");
  for (int state = 0; state < POLYCCL_TRACE_STATE_COUNT; state++) {
    pccl_text_bytes(out, ",", state > 0 ? 1 : 0);
    add_paint(out, polyccl_trace_state_name((polyccl_trace_state)state), &pccl_state_paint[state]);
    pccl_text_add(out, "}");
  }
  pccl_text_add(out, "]");
}

static polyccl_result add_data(pccl_text *out, const char *title, const pccl_fact *facts, size_t fact_count,
                               const polyccl_trace *const *traces, size_t trace_count) {
  pccl_text_add(out, "{\"title\":");
  pccl_escape_json(out, title);
  pccl_text_add(out, ",\"facts\":[");
  for (size_t i = 0; i < fact_count; i++) {
    pccl_text_add(out, i > 0 ? ",[" : "[");
    pccl_escape_json(out, facts[i].term);
    pccl_text_add(out, ",");
    pccl_escape_json(out, facts[i].text);
    pccl_text_add(out, "]");
  }
  pccl_text_add(out, "]");
  add_paints(out);
  pccl_text_add(out, ",\n\"traces\":[\n");
  for (size_t i = 0; i < trace_count; i++) {
    pccl_text_bytes(out, ",\n", i > 0 ? 2 : 0);
    pccl_thinned thinned;
    PCCL_TRY(pccl_thin_samples(traces[i], MAX_SAMPLES, &thinned));
    add_trace(out, traces[i], &thinned);
    pccl_thinned_free(&thinned);
  }
  pccl_text_add(out, "]}");
  return POLYCCL_SUCCESS;
}

/* The template with its @MARKS@ replaced, in their order. */
static void add_template(pccl_text *out, const char *title, const pccl_text *data) {
  const char *at = (const char *)pccl_page_html, *end = at + pccl_page_html_size;
  static const char *const marks[] = {"@TITLE@", "@STYLE@", "@DATA@", "@SCRIPT@"};
  for (int i = 0; i < 4; i++) {
    const char *mark = memmem(at, (size_t)(end - at), marks[i], strlen(marks[i]));
    pccl_text_bytes(out, at, (size_t)(mark - at));
    at = mark + strlen(marks[i]);
    switch (i) {
      case 0: pccl_escape_xml(out, title); break;
      case 1: pccl_text_bytes(out, (const char *)pccl_page_style, pccl_page_style_size); break;
      case 2: pccl_text_bytes(out, data->data, data->len); break;
      default: pccl_text_bytes(out, (const char *)pccl_page_script, pccl_page_script_size);
    }
  }
  pccl_text_bytes(out, at, (size_t)(end - at));
}

polyccl_result pccl_page_write(const char *title, const pccl_fact *facts, size_t fact_count,
                               const polyccl_trace *const *traces, size_t trace_count, FILE *to) {
  for (size_t i = 0; i < trace_count; i++) {
    if (traces[i]->records > MAX_RECORDS) {
      return pccl_fail(POLYCCL_ERROR_LIMIT,
                       "%zu boxes are more than a page can hold (%d); take a smaller size or fewer micro-batches",
                       traces[i]->records, MAX_RECORDS);
    }
  }
  pccl_text data = {0}, out = {0};
  polyccl_result result = add_data(&data, title, facts, fact_count, traces, trace_count);
  if (result == POLYCCL_SUCCESS && !data.failed) {
    add_template(&out, title, &data);
  }
  bool no_memory = data.failed || out.failed;
  if (result == POLYCCL_SUCCESS && !no_memory && (fwrite(out.data, 1, out.len, to) != out.len || fflush(to) != 0)) {
    result = pccl_fail_errno("cannot write the page");
  }
  pccl_text_free(&data);
  pccl_text_free(&out);
  return result == POLYCCL_SUCCESS && no_memory ? pccl_no_memory("a page") : result;
}
