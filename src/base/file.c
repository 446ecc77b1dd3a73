#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"

static polyccl_result cannot_read(const char *path, const char *why) {
  return pccl_fail(POLYCCL_ERROR_INVALID, "%s: cannot read: %s", path, why);
}

static polyccl_result read_open_file(const char *path, int fd, size_t max_bytes, char **text, size_t *length) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return cannot_read(path, strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    return cannot_read(path, "it is a directory");
  }
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) {
    return cannot_read(path, "it is a device");
  }
  PCCL_VEC(char) bytes = {0};
  for (;;) {
    enum { PIECE = 1 << 16 };
    if (!pccl_vec_reserve(&bytes, PIECE)) {
      pccl_vec_free(&bytes);
      return pccl_no_memory(path);
    }
    ssize_t got = read(fd, bytes.data + bytes.len, PIECE - 1);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0 || bytes.len + (size_t)got > max_bytes) {
      pccl_vec_free(&bytes);
      return got < 0 ? cannot_read(path, strerror(errno)) : cannot_read(path, "the file is too large");
    }
    bytes.len += (size_t)got;
    if (got == 0) {
      break;
    }
  }
  const char *start = bytes.data;
  pccl_skip_mark(&start, &bytes.len);
  if (start != bytes.data) {
    memmove(bytes.data, start, bytes.len);
  }
  bytes.data[bytes.len] = '\0';
  *text = bytes.data;
  *length = bytes.len;
  return POLYCCL_SUCCESS;
}

void pccl_skip_mark(const char **text, size_t *length) {
  static const char mark[] = "\xef\xbb\xbf";
  size_t bytes = sizeof mark - 1;
  if (*length >= bytes && memcmp(*text, mark, bytes) == 0) {
    *text += bytes;
    *length -= bytes;
  }
}

polyccl_result pccl_read_file(const char *path, size_t max_bytes, char **text, size_t *length) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return cannot_read(path, strerror(errno));
  }
  polyccl_result result = read_open_file(path, fd, max_bytes, text, length);
  close(fd);
  return result;
}

void pccl_text_bytes(pccl_text *text, const char *bytes, size_t count) {
  if (text->failed || !pccl_vec_reserve(text, count + 1)) {
    text->failed = true;
    return;
  }
  memcpy(text->data + text->len, bytes, count);
  text->len += count;
  text->data[text->len] = '\0';
}

void pccl_text_add(pccl_text *text, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int need = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (need < 0 || text->failed || !pccl_vec_reserve(text, (size_t)need + 1)) {
    text->failed = true;
  } else {
    vsnprintf(text->data + text->len, (size_t)need + 1, format, again);
    text->len += (size_t)need;
  }
  va_end(again);
}

void pccl_text_free(pccl_text *text) {
  free(text->data);
  *text = (pccl_text){0};
}
