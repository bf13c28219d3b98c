// build:
// deterministic
// loses
// Proves: a timer that rings faster than its handler runs under Geryon can be
// turned off, also while one ring waits and the next one is due.
#include "guest.h"
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static void on_alarm(int n) {
  (void)n;
  ticks++;
}

int main(void) {
  struct sigaction a = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &a, 0) == 0);
  for (int i = 0; i < 50; i++) {
    struct itimerval every = {{0, 20}, {0, 20}};
    CHECK(setitimer(ITIMER_REAL, &every, 0) == 0);
    // One rings meanwhile, and the next one during its handler.
    for (volatile int spin = 0; spin < 1000000; spin++)
      ;
    struct itimerval off = {0}, was;
    CHECK(setitimer(ITIMER_REAL, &off, &was) == 0);
    CHECK(was.it_interval.tv_usec == 20);
  }
  CHECK(ticks > 0);
  guest_ok("sig_storm_off");
}
