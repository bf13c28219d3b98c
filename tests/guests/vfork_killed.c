// build:
// args: SIGTERM
// args: SIGKILL
// deterministic
// Proves: a vfork's child may end by a signal that it sends itself. (Its followers waited for the end of that call, and
// their parents with them.)
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
static volatile int stored;
int main(int argc, char **argv) {
  int signal = argc > 1 && strcmp(argv[1], "SIGKILL") == 0 ? SIGKILL : SIGTERM;
  for (volatile int i = 1; i <= 20; i++) {
    pid_t pid = vfork();
    if (pid == 0) {
      stored = i;
      kill(getpid(), signal);
      _exit(3);
    }
    int st = 0;
    CHECK(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) && WTERMSIG(st) == signal);
    CHECK(stored == i);
  }
  guest_ok("vfork_killed");
}
