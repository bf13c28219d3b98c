// build:
// deterministic
// not in clocks: processes that share memory take turns in serial order only
// Proves: a process that is stopped while others share memory with it keeps nobody waiting for its turn. (Whoever had
// the turn before offered it to it, for ever: the run hung.)
#include "guest.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  for (int i = 0; i < 10; i++) {
    int ready[2], status;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      *shared = i;
      CHECK(write(ready[1], "!", 1) == 1);
      for (;;)
        pause();
    }
    char c;
    CHECK(read(ready[0], &c, 1) == 1 && *shared == i);
    CHECK(kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
    CHECK(kill(child, SIGCONT) == 0 && waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status));
    CHECK(kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
    CHECK(close(ready[0]) == 0 && close(ready[1]) == 0);
  }
  guest_ok("kin_stopped");
}
