#include "executor/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/vec.h"

enum { PATH_BYTES = 4096 };

/* False: there is no folder, or its name is too long. */
static bool name_file(const char *key, char *path) {
  const char *folder = pccl_option("POLYCCL_CACHE");
  int length = snprintf(path, PATH_BYTES, "%s/%d.%d.%d-%s.image", folder, POLYCCL_VERSION_MAJOR, POLYCCL_VERSION_MINOR,
                        POLYCCL_VERSION_PATCH, key);
  return folder[0] != '\0' && length < PATH_BYTES;
}

/* The proof is not repeated, so nobody else may be able to write what is read. */
static bool is_trusted(const struct stat *status) {
  return S_ISREG(status->st_mode) && (status->st_uid == geteuid() || status->st_uid == 0) &&
         (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool read_bytes(int fd, void *to, size_t bytes) {
  char *at = to;
  while (bytes > 0) {
    ssize_t got = read(fd, at, bytes);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    at += got;
    bytes -= (size_t)got;
  }
  return true;
}

/* NULL: it is no image of this key, or there is no memory. The head is read first, lest a large file of anything be. */
static void *read_block(int fd, size_t bytes, const char *key) {
  pccl_image_head head;
  if (bytes < sizeof head || !read_bytes(fd, &head, sizeof head) || !pccl_image_head_is_right(&head, bytes, key)) {
    return NULL;
  }
  char *block = pccl_array(bytes, 1);
  if (block != NULL) {
    memcpy(block, &head, sizeof head);
    if (!read_bytes(fd, block + sizeof head, bytes - sizeof head)) {
      free(block);
      return NULL;
    }
  }
  return block;
}

static polyccl_result read_image(int fd, const char *path, const char *key, pccl_image **image) {
  struct stat status;
  if (fstat(fd, &status) != 0 || !is_trusted(&status)) {
    PCCL_INFO("%s is not used: it is no regular file of this user's that only the user may write", path);
    return POLYCCL_SUCCESS;
  }
  void *block = read_block(fd, (size_t)status.st_size, key);
  pccl_image *found = NULL;
  polyccl_result result = block != NULL ? pccl_image_open(block, (size_t)status.st_size, key, true, block, free, &found)
                                        : POLYCCL_ERROR_INVALID;
  if (result == POLYCCL_SUCCESS && !pccl_image_is_right(found)) {
    pccl_image_release(found);
    result = POLYCCL_ERROR_INVALID;
  }
  if (result == POLYCCL_ERROR_INVALID) {
    PCCL_INFO("%s is not used: it is damaged, or of another build", path);
    return POLYCCL_SUCCESS;
  }
  PCCL_TRY(result);
  *image = found;
  return POLYCCL_SUCCESS;
}

polyccl_result pccl_image_read(const char *key, pccl_image **image) {
  char path[PATH_BYTES];
  *image = NULL;
  int fd = name_file(key, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
  if (fd < 0) {
    return POLYCCL_SUCCESS;
  }
  polyccl_result result = read_image(fd, path, key, image);
  close(fd);
  return result;
}

static bool write_whole(int fd, const char *data, size_t bytes) {
  while (bytes > 0) {
    ssize_t put = write(fd, data, bytes);
    if (put < 0 && errno != EINTR) {
      return false;
    }
    data += put > 0 ? put : 0;
    bytes -= put > 0 ? (size_t)put : 0;
  }
  return true;
}

/* The file appears whole under its name, and in place of an older one. */
static bool write_file(const pccl_image *image, const char *path) {
  char made[PATH_BYTES + 8];
  snprintf(made, sizeof made, "%s.XXXXXX", path);
  int fd = mkostemp(made, O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  bool written = write_whole(fd, (const char *)image->head, (size_t)image->head->bytes);
  written = close(fd) == 0 && written && rename(made, path) == 0;
  if (!written) {
    int cause = errno;
    unlink(made);
    errno = cause;
  }
  return written;
}

void pccl_image_write(const pccl_image *image) {
  static atomic_flag warned = ATOMIC_FLAG_INIT;
  char path[PATH_BYTES];
  if (image->head->result != POLYCCL_SUCCESS || !name_file(image->head->key, path)) {
    return;
  }
  const char *folder = pccl_option("POLYCCL_CACHE");
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
    path[0] = '\0'; /* the reason is in errno */
  }
  if ((path[0] == '\0' || !write_file(image, path)) && !atomic_flag_test_and_set(&warned)) {
    PCCL_LOG(PCCL_LOG_WARN, "POLYCCL_CACHE=%s: plans are not kept there: %s", folder, strerror(errno));
  }
}
