/* Logging to standard error or POLYCCL_DEBUG_FILE. POLYCCL_DEBUG=version|warn|info|trace sets the level, as in NCCL. */
#ifndef PCCL_BASE_LOG_H
#define PCCL_BASE_LOG_H

#include <stdbool.h>

typedef enum pccl_log_level {
  PCCL_LOG_NONE = 0,
  PCCL_LOG_VERSION,
  PCCL_LOG_WARN,
  PCCL_LOG_INFO,
  PCCL_LOG_TRACE
} pccl_log_level;

bool pccl_log_enabled(pccl_log_level level);
void pccl_log_write(pccl_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define PCCL_LOG(level, ...)                \
  do {                                      \
    if (pccl_log_enabled(level)) {          \
      pccl_log_write((level), __VA_ARGS__); \
    }                                       \
  } while (0)
#define PCCL_INFO(...) PCCL_LOG(PCCL_LOG_INFO, __VA_ARGS__)
#define PCCL_TRACE(...) PCCL_LOG(PCCL_LOG_TRACE, __VA_ARGS__)

#endif
