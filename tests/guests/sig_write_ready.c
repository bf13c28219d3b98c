// build:
// not in data: mkstemp makes names from the address of a variable on the stack
// deterministic
// Proves: a write that need not wait is not ended by a signal. One that came while its replicas still agreed on
// it ended it with EINTR, where the handler had no SA_RESTART; the last output of a program was lost at its exit.
#include "guest.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>

static volatile sig_atomic_t rang;
static void on_alarm(int s) { (void)s, rang++; }

static void fill(const char *what, int to, int from) {
  char bytes[64] = "bytes", back[64];
  struct iovec two[2] = {{bytes, 32}, {bytes, 32}};
  for (int i = 0; i < 1000; i++) {
    ssize_t n = i % 2 ? write(to, bytes, sizeof bytes) : writev(to, two, 2);
    if (n != sizeof bytes) {
      printf("%s: write %d gave %zd, errno %d\n", what, i, n, errno);
      exit(1);
    }
    while (from >= 0 && (n = read(from, back, sizeof back)) < 0 && errno == EINTR) {}
    CHECK(n == sizeof back);
  }
  printf("%s: all written\n", what);
}

int main(void) {
  char name[] = "/tmp/sig_write_ready.XXXXXX";
  int file = mkstemp(name), p[2], s[2];
  CHECK(file >= 0 && unlink(name) == 0);
  CHECK(pipe(p) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
  struct sigaction sa = {.sa_handler = on_alarm};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  fill("file", file, -1);
  fill("pipe", p[1], p[0]);
  fill("socket", s[0], s[1]);
  while (!rang) usleep(100);
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  guest_ok("sig_write_ready");
}
