// build:
// args: 50
// deterministic
// loses
// Proves: a child in its parent's memory (vfork) may sleep there; its parent,
// with it. Tests of recovery kill the leader meanwhile.
#define _GNU_SOURCE
#include "guest.h"
#include <sys/wait.h>
#include <time.h>

int main(int argc, char **argv) {
  CHECK(argc == 2);
  long ms = atol(argv[1]);
  struct timespec nap = {ms / 1000, ms % 1000 * 1000000};
  int status;
  volatile int slept = 0;
  pid_t child = vfork();
  CHECK(child >= 0);
  if (child == 0) {
    slept = nanosleep(&nap, NULL) == 0;
    _exit(slept ? 17 : 1);
  }
  // It slept in our memory.
  CHECK(slept);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 17);
  guest_ok("recover_nap");
  return 0;
}
