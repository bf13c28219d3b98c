// build:
// args: 4
// deterministic
// loses
// Proves: of each child's end its parent is told by a signal, which is blocked
// but while it waits for it (as make does). Tests of recovery kill the leader
// meanwhile: the next one's kernel tells it of the ends of children that the
// program does not know, and drops what else comes until that is taken.
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t told;

static void handler(int signal) { told += signal == SIGCHLD; }

static pid_t child(int status, long ms) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    struct timespec t = {0, ms * 1000000};
    CHECK(nanosleep(&t, NULL) == 0);
    _exit(status);
  }
  return pid;
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 4;
  struct sigaction action = {.sa_handler = handler};
  CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
  sigset_t blocked, open;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  CHECK(sigprocmask(SIG_BLOCK, &blocked, &open) == 0);
  int sum = 0;
  for (int round = 0; round < rounds; round++) {
    child(round % 7, 5);
    child(round % 5, 9);
    for (int left = 2; left > 0;) {
      int status;
      pid_t pid = waitpid(-1, &status, WNOHANG);
      CHECK(pid >= 0);
      if (pid > 0) {
        CHECK(WIFEXITED(status));
        sum += WEXITSTATUS(status);
        left--;
        continue;
      }
      struct timespec long_enough = {40, 0};
      int woken = pselect(0, NULL, NULL, NULL, &long_enough, &open);
      if (woken >= 0)
        fprintf(stderr, "round %d, %d left, told %d, one more: %d\n", round, left,
                told, waitpid(-1, &status, WNOHANG));
      CHECK(woken < 0 && errno == EINTR);
    }
  }
  CHECK(told > 0);
  printf("%d\n", sum);
  guest_ok("recover_children");
}
