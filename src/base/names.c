/* Names of the public enumerations, one table each. */
#include <string.h>
#include <strings.h>

#include "base/error.h"

typedef struct name_entry {
  const char *name; /* as written */
  int value;
} name_entry;

/* The first entry of a value is its name, further ones are synonyms. */
static const name_entry dtype_names[] = {{"f32", POLYCCL_FLOAT32},
                                         {"f64", POLYCCL_FLOAT64},
                                         {"i32", POLYCCL_INT32},
                                         {"i64", POLYCCL_INT64},
                                         {"u8", POLYCCL_UINT8},
                                         {"f16", POLYCCL_FLOAT16},
                                         {"bf16", POLYCCL_BFLOAT16},
                                         {"u32", POLYCCL_UINT32},
                                         {"u64", POLYCCL_UINT64},
                                         {"i8", POLYCCL_INT8},
                                         {"bool", POLYCCL_BOOL},
                                         {"f8e4m3", POLYCCL_FLOAT8E4M3},
                                         {"f8e5m2", POLYCCL_FLOAT8E5M2},
                                         {"float", POLYCCL_FLOAT32},
                                         {"float32", POLYCCL_FLOAT32},
                                         {"double", POLYCCL_FLOAT64},
                                         {"float64", POLYCCL_FLOAT64},
                                         {"int32", POLYCCL_INT32},
                                         {"int", POLYCCL_INT32},
                                         {"int64", POLYCCL_INT64},
                                         {"uint8", POLYCCL_UINT8},
                                         {"half", POLYCCL_FLOAT16},
                                         {"float16", POLYCCL_FLOAT16},
                                         {"bfloat16", POLYCCL_BFLOAT16},
                                         {"uint32", POLYCCL_UINT32},
                                         {"uint64", POLYCCL_UINT64},
                                         {"int8", POLYCCL_INT8},
                                         {"float8e4m3", POLYCCL_FLOAT8E4M3},
                                         {"float8_e4m3fn", POLYCCL_FLOAT8E4M3},
                                         {"float8e5m2", POLYCCL_FLOAT8E5M2},
                                         {"float8_e5m2", POLYCCL_FLOAT8E5M2},
                                         {NULL, 0}};

static const name_entry redop_names[] = {{"sum", POLYCCL_SUM}, {"prod", POLYCCL_PROD}, {"min", POLYCCL_MIN},
                                         {"max", POLYCCL_MAX}, {"avg", POLYCCL_AVG},   {NULL, 0}};

static const name_entry protocol_names[] = {
    {"Simple", POLYCCL_SIMPLE}, {"LL", POLYCCL_LL}, {"LL128", POLYCCL_LL128}, {NULL, 0}};

static const name_entry collective_names[] = {{"allreduce", POLYCCL_ALLREDUCE},
                                              {"allgather", POLYCCL_ALLGATHER},
                                              {"reduce_scatter", POLYCCL_REDUCE_SCATTER},
                                              {"alltoall", POLYCCL_ALLTOALL},
                                              {"broadcast", POLYCCL_BROADCAST},
                                              {"reduce", POLYCCL_REDUCE},
                                              {"gather", POLYCCL_GATHER},
                                              {"scatter", POLYCCL_SCATTER},
                                              {"sendrecv", POLYCCL_SENDRECV},
                                              {"custom", POLYCCL_CUSTOM},
                                              {"all_reduce", POLYCCL_ALLREDUCE},
                                              {"all_gather", POLYCCL_ALLGATHER},
                                              {"reducescatter", POLYCCL_REDUCE_SCATTER},
                                              {"all_to_all", POLYCCL_ALLTOALL},
                                              {"bcast", POLYCCL_BROADCAST},
                                              {NULL, 0}};

static const char *name_of(const name_entry *table, int value) {
  for (; table->name != NULL; table++) {
    if (table->value == value) {
      return table->name;
    }
  }
  return NULL;
}

static polyccl_result parse_name(const name_entry *table, const char *what, const char *name, int *value) {
  for (const name_entry *entry = table; entry->name != NULL; entry++) {
    if (strcasecmp(entry->name, name) == 0) {
      *value = entry->value;
      return POLYCCL_SUCCESS;
    }
  }
  char known[256] = "";
  for (const name_entry *entry = table; entry->name != NULL && entry->value >= (int)(entry - table); entry++) {
    size_t used = strlen(known);
    strncat(known, used > 0 ? ", " : "", sizeof known - used - 1);
    strncat(known, entry->name, sizeof known - strlen(known) - 1);
  }
  return pccl_fail(POLYCCL_ERROR_INVALID, "unknown %s \"%.64s\" (known: %s)", what, name, known);
}

const char *polyccl_dtype_name(polyccl_dtype dtype) { return name_of(dtype_names, (int)dtype); }
const char *polyccl_redop_name(polyccl_redop op) { return name_of(redop_names, (int)op); }
const char *polyccl_protocol_name(polyccl_protocol protocol) { return name_of(protocol_names, (int)protocol); }
const char *polyccl_collective_name(polyccl_collective c) { return name_of(collective_names, (int)c); }

#define DEFINE_PARSE(function, type, table, what)          \
  polyccl_result function(const char *name, type *value) { \
    int number = 0;                                        \
    PCCL_TRY(parse_name(table, what, name, &number));      \
    *value = (type)number;                                 \
    return POLYCCL_SUCCESS;                                \
  }
DEFINE_PARSE(polyccl_dtype_parse, polyccl_dtype, dtype_names, "data type")
DEFINE_PARSE(polyccl_redop_parse, polyccl_redop, redop_names, "reduction")
DEFINE_PARSE(polyccl_protocol_parse, polyccl_protocol, protocol_names, "protocol")
DEFINE_PARSE(polyccl_collective_parse, polyccl_collective, collective_names, "collective")

size_t polyccl_dtype_size(polyccl_dtype dtype) {
  static const unsigned char sizes[POLYCCL_DTYPE_COUNT] = {
      [POLYCCL_FLOAT32] = 4,   [POLYCCL_FLOAT64] = 8, [POLYCCL_INT32] = 4,    [POLYCCL_INT64] = 8,
      [POLYCCL_UINT8] = 1,     [POLYCCL_FLOAT16] = 2, [POLYCCL_BFLOAT16] = 2, [POLYCCL_UINT32] = 4,
      [POLYCCL_UINT64] = 8,    [POLYCCL_INT8] = 1,    [POLYCCL_BOOL] = 1,     [POLYCCL_FLOAT8E4M3] = 1,
      [POLYCCL_FLOAT8E5M2] = 1};
  return (unsigned)dtype < POLYCCL_DTYPE_COUNT ? sizes[dtype] : 0;
}

const char *polyccl_result_name(polyccl_result result) {
  static const char *const names[] = {"success",      "invalid",      "unsupported", "limit",          "out of memory",
                                      "system error", "remote error", "timed out",   "internal error", "in progress"};
  return (unsigned)result < sizeof names / sizeof names[0] ? names[result] : "unknown result";
}
