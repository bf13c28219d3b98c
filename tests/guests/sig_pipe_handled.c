// build:
// deterministic
// loses
// Proves: SIGPIPE handled, then ignored: EPIPE both times, one handler run.
#include "guest.h"
#include <signal.h>
static volatile sig_atomic_t hits;
static void on(int s) {
  (void)s;
  hits++;
}
int main(void) {
  int p[2];
  CHECK(pipe(p) == 0 && close(p[0]) == 0);
  CHECK(signal(SIGPIPE, on) != SIG_ERR);
  CHECK(write(p[1], "x", 1) == -1 && errno == EPIPE && hits == 1);
  CHECK(signal(SIGPIPE, SIG_IGN) == on);
  CHECK(write(p[1], "x", 1) == -1 && errno == EPIPE && hits == 1);
  guest_ok("sig_pipe_handled");
}
