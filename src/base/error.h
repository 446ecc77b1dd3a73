/* The last error of a thread. The place that finds a fault calls pccl_fail() once; callers only pass the result on. */
#ifndef PCCL_BASE_ERROR_H
#define PCCL_BASE_ERROR_H

#include <stdarg.h>

#include <polyccl/types.h>

/* Stores the message, logs it at level warn, returns `result`. */
polyccl_result pccl_fail(polyccl_result result, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* The same with "file:line: " before the message if the place is known. */
polyccl_result pccl_fail_at(polyccl_result result, polyccl_location at, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Fails with MEMORY and what the memory was for; also with its size if base/vec.h or base/map.h asked for it. */
polyccl_result pccl_no_memory(const char *what) __attribute__((cold));

/* Fails with SYSTEM and adds the text of errno to the message. */
polyccl_result pccl_fail_errno(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Adds text before the stored message, such as the name of a file. Returns `result`. */
polyccl_result pccl_prefix(polyccl_result result, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Adds text after the stored message. Returns `result`. */
polyccl_result pccl_suffix(polyccl_result result, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#define PCCL_TRY(call)                        \
  do {                                        \
    polyccl_result pccl_try_result = (call);  \
    if (pccl_try_result != POLYCCL_SUCCESS) { \
      return pccl_try_result;                 \
    }                                         \
  } while (0)

#endif
