// build:
// deterministic
// Proves: a blocking read is interrupted (EINTR without SA_RESTART, restarted
// with it), likewise nanosleep with its remaining time.
#include "guest.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
static volatile sig_atomic_t hits;
static int wake = -1;
static void on(int s) {
  (void)s;
  hits++;
  if (wake >= 0)
    CHECK(write(wake, "w", 1) == 1);
}
static void arm(int flags) {
  struct sigaction sa = {.sa_handler = on, .sa_flags = flags};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  struct itimerval it = {{0, 0}, {0, 30000}};
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
}
int main(void) {
  int p[2];
  char c;
  CHECK(pipe(p) == 0);
  arm(0);
  CHECK(read(p[0], &c, 1) == -1 && errno == EINTR && hits == 1);
  wake = p[1];
  arm(SA_RESTART);
  CHECK(read(p[0], &c, 1) == 1 && c == 'w' && hits == 2);
  wake = -1;
  arm(SA_RESTART);
  struct timespec ts = {10, 0}, left = {0, 0};
  CHECK(nanosleep(&ts, &left) == -1 && errno == EINTR && hits == 3);
  CHECK(left.tv_sec >= 5);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    usleep(100000);
    _exit(4);
  }
  arm(0);
  int st;
  CHECK(waitpid(pid, &st, 0) == -1 && errno == EINTR);
  CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 4);
  guest_ok("sig_eintr_read");
}
