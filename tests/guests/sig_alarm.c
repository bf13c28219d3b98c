// build:
// deterministic
// loses
// Proves: alarm wakes pause and runs the handler once, in every replica.
#include "guest.h"
#include <signal.h>
static volatile sig_atomic_t hits;
static void on(int s) {
  CHECK(s == SIGALRM);
  hits++;
}
int main(void) {
  CHECK(signal(SIGALRM, on) != SIG_ERR);
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGALRM);
  CHECK(sigprocmask(SIG_BLOCK, &block, &old) == 0);
  CHECK(alarm(100) == 0 && alarm(1) == 100);
  CHECK(sigsuspend(&old) == -1 && errno == EINTR && hits == 1);
  CHECK(alarm(0) == 0);
  guest_ok("sig_alarm");
}
