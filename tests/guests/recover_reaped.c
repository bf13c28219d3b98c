// build:
// args: 4
// deterministic
// loses
// Proves: a SIGCHLD that is blocked waits, also for a child that has been waited for meanwhile. (The leader that has taken over
// is told of its children's ends by the monitor, which took a child that was waited for for one of which nothing is to be said.)
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>

static volatile sig_atomic_t told;
static volatile pid_t child;

static void handler(int s, siginfo_t *info, void *context) {
  (void)context;
  told += s == SIGCHLD;
  child = info->si_pid;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 4;
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigset_t blocked, open;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  CHECK(!sigaction(SIGCHLD, &action, NULL) && !sigprocmask(SIG_BLOCK, &blocked, &open));
  for (int round = 0; round < rounds; round++) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
      _exit(round);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == round);
    printf("round %d, %d told\n", round, (int)told);
    fflush(stdout);
    CHECK(!sigprocmask(SIG_SETMASK, &open, NULL) && !sigprocmask(SIG_BLOCK, &blocked, NULL));
    CHECK(told == round + 1 && child == pid);
  }
  guest_ok("recover_reaped");
}
