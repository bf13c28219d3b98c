// build:
// deterministic
// loses
// Proves: parent stops, continues and kills a child; the child's handler runs.
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
static void on(int s) {
  (void)s;
  _exit(42);
}
int main(void) {
  int st, p[2];
  char c;
  CHECK(pipe(p) == 0);
  for (int round = 0; round < 3; round++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      signal(SIGTERM, on);
      CHECK(write(p[1], "r", 1) == 1);
      for (;;)
        pause();
    }
    CHECK(read(p[0], &c, 1) == 1);
    if (round == 0) {
      CHECK(!kill(pid, SIGTERM) && waitpid(pid, &st, 0) == pid);
      CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 42);
    } else if (round == 1) {
      CHECK(!kill(pid, SIGKILL) && waitpid(pid, &st, 0) == pid);
      CHECK(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
    } else {
      CHECK(!kill(pid, SIGSTOP) && waitpid(pid, &st, WUNTRACED) == pid);
      CHECK(WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
      CHECK(!kill(pid, SIGCONT) && waitpid(pid, &st, WCONTINUED) == pid);
      CHECK(WIFCONTINUED(st));
      CHECK(!kill(pid, SIGTERM) && waitpid(pid, &st, 0) == pid);
      CHECK(WIFEXITED(st) && WEXITSTATUS(st) == 42);
    }
  }
  guest_ok("sig_kill_child");
}
