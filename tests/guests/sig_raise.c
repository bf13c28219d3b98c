// build:
// deterministic
// loses
// Proves: raise, kill and sigqueue to oneself arrive before the call returns;
// siginfo carries pid, uid and value; SA_RESETHAND and SA_NODEFER act.
#include "guest.h"
#include <signal.h>
static volatile sig_atomic_t hits, value, depth, deepest;
static volatile int from;
static void on(int s, siginfo_t *si, void *uc) {
  (void)uc;
  hits++;
  from = si->si_pid;
  value = si->si_value.sival_int;
  if (s == SIGUSR2 && ++depth < 4) {
    deepest = depth;
    CHECK(raise(SIGUSR2) == 0);
  }
}
int main(void) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO}, was;
  CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
  CHECK(raise(SIGUSR1) == 0 && hits == 1 && from == getpid());
  CHECK(kill(getpid(), SIGUSR1) == 0 && hits == 2);
  union sigval v = {.sival_int = 4711};
  CHECK(sigqueue(getpid(), SIGUSR1, v) == 0 && hits == 3 && value == 4711);
  sa.sa_flags = SA_SIGINFO | SA_NODEFER;
  CHECK(sigaction(SIGUSR2, &sa, NULL) == 0);
  CHECK(raise(SIGUSR2) == 0 && depth == 4 && deepest == 3);
  sa.sa_flags = SA_SIGINFO | (int)SA_RESETHAND;
  CHECK(sigaction(SIGRTMIN, &sa, NULL) == 0 && raise(SIGRTMIN) == 0);
  CHECK(sigaction(SIGRTMIN, NULL, &was) == 0 && was.sa_handler == SIG_DFL);
  CHECK(kill(getpid(), 0) == 0 && kill(getpid(), 65) == -1 && errno == EINVAL);
  guest_ok("sig_raise");
}
