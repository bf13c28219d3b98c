// build:
// deterministic
// loses
// Proves: SIGCHLD handler with siginfo of every child, reaped in the handler.
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
#define CHILDREN 8
static volatile sig_atomic_t reaped, sum;
static void on(int s, siginfo_t *si, void *uc) {
  (void)uc;
  CHECK(s == SIGCHLD && si->si_code == CLD_EXITED);
  int st;
  while (waitpid(-1, &st, WNOHANG) > 0) {
    reaped++;
    sum += WEXITSTATUS(st);
  }
}
int main(void) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGCHLD, &sa, NULL) == 0);
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  CHECK(sigprocmask(SIG_BLOCK, &block, &old) == 0);
  for (int i = 0; i < CHILDREN; i++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      usleep(1000 * (i % 3));
      _exit(10 + i);
    }
  }
  while (reaped < CHILDREN)
    sigsuspend(&old);
  CHECK(sum == 10 * CHILDREN + 28);
  guest_ok("sig_chld");
}
