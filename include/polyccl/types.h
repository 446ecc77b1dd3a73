/* Types that every PolyCCL header uses: results, data types, reductions, protocols, collectives, source places.
 *
 * Every function that can fail returns a polyccl_result. If it fails, its outputs are unchanged and
 * polyccl_last_error() returns one line for people: what failed, the values, and the file and line of the program if
 * one is concerned.
 *
 * Thread safety: any thread may call these functions at any time. */
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
  POLYCCL_ERROR_INVALID,     /* an argument, a file or a program is wrong; the caller can correct it */
  POLYCCL_ERROR_UNSUPPORTED, /* the request is well formed, but this build or this plan cannot do it */
  POLYCCL_ERROR_LIMIT,       /* a limit (memory, instructions, channels, ...) was reached */
  POLYCCL_ERROR_MEMORY,      /* the system has no memory left */
  POLYCCL_ERROR_SYSTEM,      /* a call of the operating system failed */
  POLYCCL_ERROR_REMOTE,      /* another rank died or aborted */
  POLYCCL_ERROR_TIMEOUT,     /* another rank did not answer in time */
  POLYCCL_ERROR_INTERNAL,    /* a defect of PolyCCL */
  POLYCCL_IN_PROGRESS        /* no error: the work has begun and goes on by itself; ask again */
} polyccl_result;

typedef enum polyccl_dtype {
  POLYCCL_FLOAT32 = 0,
  POLYCCL_FLOAT64,
  POLYCCL_INT32,
  POLYCCL_INT64,
  POLYCCL_UINT8,
  POLYCCL_FLOAT16,
  POLYCCL_BFLOAT16,
  POLYCCL_UINT32,
  POLYCCL_UINT64,
  POLYCCL_INT8,
  POLYCCL_BOOL,       /* a byte */
  POLYCCL_FLOAT8E4M3, /* OCP's FN variant: no infinities, the largest number is 448 */
  POLYCCL_FLOAT8E5M2,
  POLYCCL_DTYPE_COUNT
} polyccl_dtype;

/* SUM and PROD of integers wrap. MIN and MAX treat -0 as less than +0. A floating-point result that is a NaN is the
 * quiet NaN without sign and payload; a result beyond the largest number of FLOAT8E4M3 is one. AVG is the mean over the
 * ranks: of floating-point numbers it is finite if all of them are (docs/executor.md bounds its error); of integers it
 * is their sum, which wraps, divided by the number of ranks and truncated towards zero. Of BOOL, any byte but 0 counts
 * as 1 and results are 0 or 1: SUM and MAX are logical or, PROD and MIN logical and, and AVG is not defined. */
typedef enum polyccl_redop {
  POLYCCL_SUM = 0,
  POLYCCL_PROD,
  POLYCCL_MIN,
  POLYCCL_MAX,
  POLYCCL_AVG,
  POLYCCL_REDOP_COUNT
} polyccl_redop;

/* How a message travels over a connection (docs/executor.md). */
typedef enum polyccl_protocol {
  POLYCCL_SIMPLE = 0,
  POLYCCL_LL,
  POLYCCL_LL128,
  POLYCCL_PROTOCOL_COUNT
} polyccl_protocol;

/* docs/plan.md defines what each of them computes. */
typedef enum polyccl_collective {
  POLYCCL_ALLREDUCE = 0,
  POLYCCL_ALLGATHER,
  POLYCCL_REDUCE_SCATTER,
  POLYCCL_ALLTOALL,
  POLYCCL_BROADCAST,
  POLYCCL_REDUCE,
  POLYCCL_GATHER,
  POLYCCL_SCATTER,
  POLYCCL_SENDRECV, /* the root's input goes to the peer's output */
  POLYCCL_CUSTOM,   /* the program or plan says what each output chunk must hold */
  POLYCCL_COLLECTIVE_COUNT
} polyccl_collective;

/* A place in the source of a program. file is NULL and line is 0 if unknown. The owner of `file` is whoever made the
 * location; a function that takes one copies what it keeps. */
typedef struct polyccl_location {
  const char *file;
  int line;
} polyccl_location;

/* The maximum number of ranks of one communicator on one machine. */
#define POLYCCL_MAX_LOCAL_RANKS 1024

/* Chunk `chunk` of the input of rank `rank`, as it is before the collective starts; both count from 0. */
typedef struct polyccl_leaf {
  int32_t rank, chunk;
} polyccl_leaf;

/* Returns the message of the last error in the calling thread, or "" if there was none; never NULL. The library owns
 * the text, which is valid until the next call that fails in this thread. */
POLYCCL_API const char *polyccl_last_error(void);

/* Returns a word or two for a result, such as "timed out"; "unknown result" for a value out of range. The text is
 * constant. */
POLYCCL_API const char *polyccl_result_name(polyccl_result result);

/* Return the name that files and options use: "f32", "sum", "Simple", "allreduce"; NULL for a value out of range. The
 * text is constant. */
POLYCCL_API const char *polyccl_dtype_name(polyccl_dtype dtype);
POLYCCL_API const char *polyccl_redop_name(polyccl_redop op);
POLYCCL_API const char *polyccl_protocol_name(polyccl_protocol protocol);
POLYCCL_API const char *polyccl_collective_name(polyccl_collective collective);

/* Returns the size of one element in bytes; 0 for a value out of range. */
POLYCCL_API size_t polyccl_dtype_size(polyccl_dtype dtype);

/* Store the value that a name stands for. Upper and lower case are the same, and common synonyms are known ("float",
 * "reducescatter"). `name` is a 0-terminated text and must not be NULL.
 * Errors: INVALID for an unknown name; the message lists the known ones. */
POLYCCL_API polyccl_result polyccl_dtype_parse(const char *name, polyccl_dtype *dtype);
POLYCCL_API polyccl_result polyccl_redop_parse(const char *name, polyccl_redop *op);
POLYCCL_API polyccl_result polyccl_protocol_parse(const char *name, polyccl_protocol *protocol);
POLYCCL_API polyccl_result polyccl_collective_parse(const char *name, polyccl_collective *collective);

#ifdef __cplusplus
}
#endif

#endif
