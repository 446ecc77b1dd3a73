/* Types shared by every PolyCCL header: results, data types, reductions, collectives, source places.
 *
 * Every function that can fail returns a polyccl_result. On failure its outputs are untouched and
 * polyccl_last_error() gives one line, for people, that says what failed, with the values and, where a
 * program is concerned, the author's file and line. */
#ifndef POLYCCL_TYPES_H
#define POLYCCL_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POLYCCL_VERSION_MAJOR 0
#define POLYCCL_VERSION_MINOR 1
#define POLYCCL_VERSION_PATCH 0

#if defined(__GNUC__)
#define POLYCCL_API __attribute__((visibility("default")))
#else
#define POLYCCL_API
#endif

typedef enum polyccl_result {
  POLYCCL_SUCCESS = 0,
  POLYCCL_ERROR_INVALID,     /* an argument, a file or a program is wrong: the caller can mend it */
  POLYCCL_ERROR_UNSUPPORTED, /* well formed, but this build or this plan cannot do it */
  POLYCCL_ERROR_LIMIT,       /* a bound (memory, instructions, channels, ...) was reached */
  POLYCCL_ERROR_MEMORY,      /* the system has no memory left */
  POLYCCL_ERROR_SYSTEM,      /* a call of the operating system failed */
  POLYCCL_ERROR_REMOTE,      /* another rank died or aborted */
  POLYCCL_ERROR_TIMEOUT,     /* another rank did not do its part in time */
  POLYCCL_ERROR_INTERNAL     /* a defect of PolyCCL */
} polyccl_result;

typedef enum polyccl_dtype {
  POLYCCL_FLOAT32 = 0,
  POLYCCL_FLOAT64,
  POLYCCL_INT32,
  POLYCCL_INT64,
  POLYCCL_UINT8,
  POLYCCL_FLOAT16,
  POLYCCL_BFLOAT16,
  POLYCCL_DTYPE_COUNT
} polyccl_dtype;

/* MIN, MAX: -0 is below +0. Floating-point operations make every NaN the quiet one without sign and payload. AVG: the
 * mean over the ranks, finite where all numbers are (the error is bounded in docs/executor.md); of integers, the sum,
 * which wraps, divided by the number of ranks and truncated towards zero. */
typedef enum polyccl_redop {
  POLYCCL_SUM = 0,
  POLYCCL_PROD,
  POLYCCL_MIN,
  POLYCCL_MAX,
  POLYCCL_AVG,
  POLYCCL_REDOP_COUNT
} polyccl_redop;

typedef enum polyccl_protocol {
  POLYCCL_SIMPLE = 0,
  POLYCCL_LL,
  POLYCCL_LL128,
  POLYCCL_PROTOCOL_COUNT
} polyccl_protocol;

typedef enum polyccl_collective {
  POLYCCL_ALLREDUCE = 0,
  POLYCCL_ALLGATHER,
  POLYCCL_REDUCE_SCATTER,
  POLYCCL_ALLTOALL,
  POLYCCL_BROADCAST,
  POLYCCL_REDUCE,
  POLYCCL_GATHER,
  POLYCCL_SCATTER,
  POLYCCL_SENDRECV, /* root's input to peer's output */
  POLYCCL_CUSTOM,   /* pre- and postcondition declared by the author */
  POLYCCL_COLLECTIVE_COUNT
} polyccl_collective;

/* The author's place in a program; file may be NULL (unknown), line 0 (unknown). */
typedef struct polyccl_location {
  const char *file;
  int line;
} polyccl_location;

/* Ranks of one communicator on one machine. */
#define POLYCCL_MAX_LOCAL_RANKS 1024

/* One element of input: chunk `chunk` of rank `rank`'s input before the collective starts. */
typedef struct polyccl_leaf {
  int32_t rank, chunk;
} polyccl_leaf;

/* The text of the last error in this thread, never NULL, "" when there was none. Owned by the library, valid
 * until this thread's next failing call. */
POLYCCL_API const char *polyccl_last_error(void);

POLYCCL_API const char *polyccl_result_name(polyccl_result result);

/* Names as used in files and options: "f32", "sum", "Simple", "allreduce". NULL for a value out of range. */
POLYCCL_API const char *polyccl_dtype_name(polyccl_dtype dtype);
POLYCCL_API const char *polyccl_redop_name(polyccl_redop op);
POLYCCL_API const char *polyccl_protocol_name(polyccl_protocol protocol);
POLYCCL_API const char *polyccl_collective_name(polyccl_collective collective);

/* Bytes of one element, 0 for a value out of range. */
POLYCCL_API size_t polyccl_dtype_size(polyccl_dtype dtype);

/* The reverse of the names. Case does not matter and the common synonyms are known ("float", "reducescatter").
 * POLYCCL_ERROR_INVALID for an unknown name; the message lists the known ones. */
POLYCCL_API polyccl_result polyccl_dtype_parse(const char *name, polyccl_dtype *dtype);
POLYCCL_API polyccl_result polyccl_redop_parse(const char *name, polyccl_redop *op);
POLYCCL_API polyccl_result polyccl_protocol_parse(const char *name, polyccl_protocol *protocol);
POLYCCL_API polyccl_result polyccl_collective_parse(const char *name, polyccl_collective *collective);

#ifdef __cplusplus
}
#endif

#endif
