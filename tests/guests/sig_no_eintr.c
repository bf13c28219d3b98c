// build:
// deterministic
// Proves: a signal whose handler does not ask for restarts never makes a call
// say EINTR that no signal can interrupt, however many arrive.
#include "guest.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static void on_alarm(int n) {
  (void)n;
  ticks++;
}

int main(void) {
  struct sigaction a = {.sa_handler = on_alarm};
  sigaction(SIGALRM, &a, 0);
  struct itimerval every = {{0, 3000}, {0, 3000}};
  CHECK(setitimer(ITIMER_REAL, &every, 0) == 0);
  const char *path = guest_tmp("eintr");
  for (int i = 0; i < 3000; i++) {
    struct stat s;
    int pair[2], fd;
    while ((fd = open(path, O_CREAT | O_RDWR, 0600)) < 0)
      CHECK(errno == EINTR);
    CHECK(fstat(fd, &s) == 0);
    CHECK(dup2(fd, 20) == 20);
    CHECK(close(20) == 0);
    CHECK(close(fd) == 0);
    CHECK(pipe(pair) == 0);
    CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
    CHECK(chmod(path, 0600) == 0);
    CHECK(unlink(path) == 0);
  }
  every.it_value.tv_usec = every.it_interval.tv_usec = 0;
  CHECK(setitimer(ITIMER_REAL, &every, 0) == 0);
  CHECK(ticks > 0);
  guest_ok("sig_no_eintr");
}
