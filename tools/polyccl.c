/* main(): makes descriptors 0 to 2 usable, runs the command (command.c), and reports output that was not written. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools.h"

/* If the caller closed one of the descriptors 0 to 2, the next file that is opened would get its number. So each gets a
 * file that cannot be used the way the descriptor is, and using it is an error. */
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
