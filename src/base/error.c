#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/vec.h"

enum { MESSAGE_BYTES = 4096 };

static _Thread_local char last_error[MESSAGE_BYTES];

const char *polyccl_last_error(void) { return last_error; }

/* vsnprintf at offset `at`; the new end. */
static size_t append_arguments(char *buffer, size_t at, const char *format, va_list arguments) {
  int n = vsnprintf(buffer + at, MESSAGE_BYTES - at, format, arguments);
  size_t end = at + (n > 0 ? (size_t)n : 0);
  return end < MESSAGE_BYTES ? end : MESSAGE_BYTES - 1;
}

static size_t append_format(char *buffer, size_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static size_t append_format(char *buffer, size_t at, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  at = append_arguments(buffer, at, format, arguments);
  va_end(arguments);
  return at;
}

/* The new message is built in another buffer, since its arguments may point into the last one. */
static void store_message(const char *message) {
  memcpy(last_error, message, strlen(message) + 1);
  PCCL_LOG(PCCL_LOG_WARN, "%s", last_error);
}

polyccl_result pccl_fail(polyccl_result result, const char *format, ...) {
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  append_arguments(message, 0, format, arguments);
  va_end(arguments);
  store_message(message);
  return result;
}

polyccl_result pccl_fail_at(polyccl_result result, polyccl_location at, const char *format, ...) {
  char message[MESSAGE_BYTES];
  size_t end = 0;
  if (at.file != NULL) {
    end = append_format(message, 0, at.line > 0 ? "%s:%d: " : "%s: ", at.file, at.line);
  }
  va_list arguments;
  va_start(arguments, format);
  append_arguments(message, end, format, arguments);
  va_end(arguments);
  store_message(message);
  return result;
}

polyccl_result pccl_no_memory(const char *what) {
  pccl_request request = pccl_failed_request();
  if (request.element == 0) {
    return pccl_fail(POLYCCL_ERROR_MEMORY, "out of memory for %s", what);
  }
  double mib = (double)request.count * (double)request.element / (1 << 20);
  return pccl_fail(POLYCCL_ERROR_MEMORY, "out of memory for %s: %.1f MiB (%zu times %zu bytes)", what, mib,
                   request.count, request.element);
}

polyccl_result pccl_fail_errno(const char *format, ...) {
  int error = errno;
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  size_t end = append_arguments(message, 0, format, arguments);
  va_end(arguments);
  append_format(message, end, ": %s", strerror(error));
  store_message(message);
  return POLYCCL_ERROR_SYSTEM;
}

polyccl_result pccl_prefix(polyccl_result result, const char *format, ...) {
  char message[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  size_t end = append_arguments(message, 0, format, arguments);
  va_end(arguments);
  append_format(message, end, "%s", last_error);
  memcpy(last_error, message, strlen(message) + 1);
  return result;
}

polyccl_result pccl_suffix(polyccl_result result, const char *format, ...) {
  char message[MESSAGE_BYTES];
  size_t end = append_format(message, 0, "%s", last_error);
  va_list arguments;
  va_start(arguments, format);
  append_arguments(message, end, format, arguments);
  va_end(arguments);
  memcpy(last_error, message, strlen(message) + 1);
  return result;
}
