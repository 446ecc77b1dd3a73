#include "memory/backing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "memory/region.h"

/* A line of /proc/self/maps. */
typedef struct mapping {
  uint64_t begin, end, offset;
  dev_t device;
  ino_t inode;
  bool shared;      /* for reading and writing, of a file */
  const char *path; /* to the end of the line */
} mapping;

static bool read_mapping(const char *line, mapping *m) {
  unsigned long long begin, end, offset, inode;
  unsigned major, minor;
  char mode[5];
  int path = 0;
  if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &begin, &end, mode, &offset, &major, &minor, &inode, &path) <
      7) {
    return false;
  }
  *m = (mapping){.begin = begin,
                 .end = end,
                 .offset = offset,
                 .device = makedev(major, minor),
                 .inode = (ino_t)inode,
                 .shared = mode[0] == 'r' && mode[1] == 'w' && mode[3] == 's' && inode != 0,
                 .path = line + path};
  return true;
}

/* What is known of the memory up to `at`. */
typedef struct search {
  uint64_t begin, end, at;
  bool one; /* it lies in one file */
  uint64_t offset;
  dev_t device;
  ino_t inode;
  char *path; /* NULL: there was no memory for it */
} search;

static void add_mapping(search *s, const mapping *m) {
  uint64_t offset = m->offset + (s->at - m->begin);
  if (s->at == s->begin) {
    s->one = m->shared;
    s->offset = offset;
    s->device = m->device;
    s->inode = m->inode;
    s->path = strndup(m->path, strcspn(m->path, "\n"));
  } else {
    s->one = s->one && m->shared && m->device == s->device && m->inode == s->inode &&
             offset == s->offset + (s->at - s->begin);
  }
  s->at = m->end < s->end ? m->end : s->end;
}

static polyccl_result search_mappings(search *s) {
  FILE *file = fopen("/proc/self/maps", "re");
  char *line = NULL;
  size_t capacity = 0;
  mapping m = {0};
  if (file == NULL) {
    return pccl_fail_errno("cannot open /proc/self/maps");
  }
  while (s->at < s->end && getline(&line, &capacity, file) > 0 && read_mapping(line, &m) && m.begin <= s->at) {
    if (m.end > s->at) {
      add_mapping(s, &m);
    }
  }
  fclose(file);
  free(line);
  return s->at == s->end ? POLYCCL_SUCCESS
                         : pccl_fail(POLYCCL_ERROR_INVALID, "there is no memory at %#llx", (unsigned long long)s->at);
}

/* Opens `path` when it is the file that was searched for; others open it in the same way, so what fails here would fail
 * there. */
static bool open_file(const char *path, const search *s, pccl_opened *opened) {
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_dev != s->device || status.st_ino != s->inode) {
    return false;
  }
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    return false;
  }
  size_t page = pccl_page_bytes();
  uint64_t bytes = s->end - s->begin;
  void *trial = MAP_FAILED;
  if (fd < 1 << PCCL_DESCRIPTOR_BITS && fstat(fd, &status) == 0 && status.st_dev == s->device &&
      status.st_ino == s->inode && s->offset <= (uint64_t)status.st_size &&
      bytes <= (uint64_t)status.st_size - s->offset) {
    trial = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (trial == MAP_FAILED) {
    close(fd);
    return false;
  }
  munmap(trial, page);
  *opened = (pccl_opened){fd, status.st_dev, status.st_ino, (size_t)status.st_size};
  return true;
}

static bool open_descriptor(const search *s, pccl_opened *opened) {
  DIR *directory = opendir("/proc/self/fd");
  bool found = false;
  if (directory == NULL) {
    return false;
  }
  for (struct dirent *entry; !found && (entry = readdir(directory)) != NULL;) {
    char path[sizeof "/proc/self/fd/" + sizeof entry->d_name];
    snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
    found = open_file(path, s, opened);
  }
  closedir(directory);
  return found;
}

polyccl_result pccl_backing_find(const void *memory, size_t bytes, pccl_opened *opened, uint64_t *offset) {
  search s = {.begin = (uintptr_t)memory, .end = (uintptr_t)memory + bytes, .at = (uintptr_t)memory};
  pccl_opened found = {.fd = -1};
  polyccl_result result = search_mappings(&s);
  if (result == POLYCCL_SUCCESS && s.one && !open_descriptor(&s, &found) && s.path != NULL && s.path[0] == '/') {
    open_file(s.path, &s, &found);
  }
  free(s.path);
  PCCL_TRY(result);
  *opened = found;
  *offset = s.offset;
  return POLYCCL_SUCCESS;
}
