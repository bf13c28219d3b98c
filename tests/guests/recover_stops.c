// build:
// args: 4
// deterministic
// loses
// Proves: a parent is told when its child was stopped and goes on, however its replicas are halted meanwhile to be copied;
// a vfork's child that it has waited for is none any more. Tests of recovery kill replicas meanwhile.
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void nap(long us) {
  struct timespec time = {0, us * 1000};
  CHECK(nanosleep(&time, NULL) == 0);
}

static pid_t sleeper(void) {
  int ready[2];
  CHECK(pipe(ready) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(write(ready[1], "!", 1) == 1);
    for (;;)
      pause();
  }
  char c;
  CHECK(read(ready[0], &c, 1) == 1 && close(ready[0]) == 0 && close(ready[1]) == 0);
  return child;
}

// By waitpid and waitid in turn.
static void told(int i, pid_t child, int options, int code) {
  int status;
  siginfo_t info;
  if (i % 2) {
    CHECK(waitid(P_PID, child, &info, options) == 0);
    CHECK(info.si_pid == child && info.si_code == code);
  } else {
    CHECK(waitpid(child, &status, options) == child);
    CHECK(code == CLD_STOPPED ? WIFSTOPPED(status) : WIFCONTINUED(status));
  }
  // Once.
  CHECK(waitpid(child, &status, WUNTRACED | WCONTINUED | WNOHANG) == 0);
}

static void stops(int i) {
  int status;
  pid_t child = sleeper();
  CHECK(kill(child, SIGSTOP) == 0);
  told(i, child, WSTOPPED, CLD_STOPPED);
  nap(500 * (i % 20));
  CHECK(kill(child, SIGCONT) == 0);
  told(i, child, WCONTINUED, CLD_CONTINUED);
  CHECK(kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
}

static void ends_at_once(void) {
  int status;
  pid_t child = vfork();
  CHECK(child >= 0);
  if (child == 0)
    _exit(33);
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 33);
  CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  for (int i = 0; i < atoi(argv[1]); i++) {
    stops(i);
    for (int k = 0; k < 5; k++)
      ends_at_once();
  }
  guest_ok("recover_stops");
  return 0;
}
