// build:
// deterministic
// loses
// Proves: handlers nest: a signal raised in a handler, masks of sa_mask, order
// of pending real-time signals, mask restored on return.
#include "guest.h"
#include <signal.h>
static char trace[64];
static volatile sig_atomic_t n;
static void on(int s) {
  trace[n++] = 'a' + (s - SIGRTMIN);
  if (s == SIGRTMIN) {
    raise(SIGRTMIN + 1); // not masked: nests here
    trace[n++] = '(';
    raise(SIGRTMIN + 2); // masked by sa_mask: after our return
    raise(SIGRTMIN);     // masked by itself: queued once more
    trace[n++] = ')';
    if (n > 12)
      signal(SIGRTMIN, SIG_IGN);
  }
}
int main(void) {
  struct sigaction sa = {.sa_handler = on};
  sigaddset(&sa.sa_mask, SIGRTMIN + 2);
  CHECK(sigaction(SIGRTMIN, &sa, NULL) == 0);
  sigemptyset(&sa.sa_mask);
  CHECK(!sigaction(SIGRTMIN + 1, &sa, NULL) && !sigaction(SIGRTMIN + 2, &sa, NULL));
  sigset_t before, after;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &before) == 0);
  raise(SIGRTMIN);
  CHECK(sigprocmask(SIG_BLOCK, NULL, &after) == 0);
  CHECK(!memcmp(&before, &after, 8));
  printf("%s\n", trace);
  guest_ok("sig_nested");
}
