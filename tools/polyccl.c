/* The polyccl program: the command (command.c) with descriptors that can be used, and its output written. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools.h"

/* A descriptor that the caller has closed must not become that of the next file. What is in its place can be neither
 * read nor written, so using it is the error that it should be. */
static void fill_closed_descriptors(void) {
  for (int fd = 0; fd <= 2; fd++) {
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) {
      return;
    }
  }
}

int main(int argc, char **argv) {
  fill_closed_descriptors();
  int status = pccl_command(argc, argv);
  bool lost = ferror(stdout) != 0;
  if ((fflush(stdout) != 0 || lost) && status == PCCL_EXIT_OK) {
    fprintf(stderr, "polyccl: standard output: cannot write: %s\n", strerror(errno));
    status = PCCL_EXIT_FAILED;
  }
  return status;
}
