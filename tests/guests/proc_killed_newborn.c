// build:
// deterministic
// Proves: a child that its parent kills as soon as it is born is dead in all
// replicas, also in one whose own copy of it comes when the others are gone.
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 200

int main(void) {
  for (int i = 0; i < TIMES; i++) {
    int signal = i % 2 ? SIGTERM : SIGKILL;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      for (;;) pause();
    }
    CHECK(kill(child, signal) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
  }
  guest_ok("proc_killed_newborn");
}
