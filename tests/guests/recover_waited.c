// build:
// args: 4
// deterministic
// loses
// Proves: a SIGCHLD that is waited for (sigwaitinfo) names the child that has ended, and comes once for each. (Behind a takeover
// it named the monitor, or a child that the program does not know, and came twice: nobody is stopped for what a wait takes.)
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static pid_t child(int status) {
  struct timespec t = {0, 1000000};
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK(!nanosleep(&t, NULL));
    _exit(status);
  }
  return pid;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 4;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
  for (int round = 0; round < rounds; round++) {
    int status;
    siginfo_t info;
    pid_t pid = child(round);
    CHECK(sigwaitinfo(&set, &info) == SIGCHLD);
    CHECK(info.si_code == CLD_EXITED && info.si_pid == pid && info.si_status == round);
    CHECK(waitpid(pid, &status, 0) == pid);
    pid = child(round);
    CHECK(sigwaitinfo(&set, NULL) == SIGCHLD);
    CHECK(waitpid(pid, &status, WNOHANG) == pid && WEXITSTATUS(status) == round);
    printf("round %d\n", round);
    fflush(stdout);
  }
  guest_ok("recover_waited");
}
