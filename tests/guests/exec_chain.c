// build:
// deterministic
// loses
// Proves: a program replaces itself eight times; descriptor, pid, environment
// and ignored signals pass through, close-on-exec does not.
#include "guest.h"
#include <fcntl.h>
#include <signal.h>
int main(int argc, char **argv) {
  int left = argc > 2 ? atoi(argv[1]) : 8;
  char num[16], pid[16], env[32];
  if (argc > 2) {
    CHECK(atoi(argv[2]) == getpid());
    CHECK(fcntl(10, F_GETFD) == 0 && fcntl(11, F_GETFD) == -1);
    CHECK(signal(SIGUSR1, SIG_IGN) == SIG_IGN);
    CHECK(atoi(getenv("GUEST_LEFT")) == left);
  } else {
    signal(SIGUSR1, SIG_IGN);
    CHECK(dup2(1, 10) == 10);
  }
  CHECK(dup3(1, 11, O_CLOEXEC) == 11);
  dprintf(10, "left %d\n", left);
  if (left == 0) {
    guest_ok("exec_chain");
    return 0;
  }
  snprintf(num, sizeof num, "%d", left - 1);
  snprintf(pid, sizeof pid, "%d", getpid());
  snprintf(env, sizeof env, "%d", left - 1);
  setenv("GUEST_LEFT", env, 1);
  execl("/proc/self/exe", argv[0], num, pid, (char *)NULL);
  CHECK(!"exec failed");
}
