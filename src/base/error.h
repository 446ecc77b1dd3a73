/* The last error of a thread. The place that finds a fault calls pccl_fail() once; callers only pass the result on. */
#ifndef PCCL_BASE_ERROR_H
#define PCCL_BASE_ERROR_H

#include <stdarg.h>

#include <polyccl/types.h>

/* Stores the message, logs it at level warn, returns `result`. */
polyccl_result pccl_fail(polyccl_result result, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* The same with "file:line: " in front where the place is known. */
polyccl_result pccl_fail_at(polyccl_result result, polyccl_location at, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* POLYCCL_ERROR_MEMORY, naming what the memory was for, and how much of it where base/vec.h or base/map.h asked. */
polyccl_result pccl_no_memory(const char *what) __attribute__((cold));

/* POLYCCL_ERROR_SYSTEM with errno's text. */
polyccl_result pccl_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Puts text in front of the stored message (a file's name around a reader's error, say). Returns `result`. */
polyccl_result pccl_prefix(polyccl_result result, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Puts text behind it. */
polyccl_result pccl_suffix(polyccl_result result, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#define PCCL_TRY(call)                        \
  do {                                        \
    polyccl_result pccl_try_result = (call);  \
    if (pccl_try_result != POLYCCL_SUCCESS) { \
      return pccl_try_result;                 \
    }                                         \
  } while (0)

#endif
