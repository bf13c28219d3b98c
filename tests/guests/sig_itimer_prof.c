// build:
// loses
// Proves: profiling timers (ITIMER_PROF, ITIMER_VIRTUAL) reach their handlers.
#include "guest.h"
#include <signal.h>
#include <sys/time.h>
static volatile sig_atomic_t prof, virt;
static void on(int s) {
  if (s == SIGPROF)
    prof++;
  else
    virt++;
}
int main(void) {
  CHECK(signal(SIGPROF, on) != SIG_ERR && signal(SIGVTALRM, on) != SIG_ERR);
  struct itimerval it = {{0, 10000}, {0, 10000}};
  CHECK(setitimer(ITIMER_PROF, &it, NULL) == 0);
  CHECK(setitimer(ITIMER_VIRTUAL, &it, NULL) == 0);
  uint64_t s = 1;
  while (prof < 3 || virt < 3) {
    guest_work(&s, 1000);
    (void)getppid();
  }
  memset(&it, 0, sizeof it);
  CHECK(setitimer(ITIMER_PROF, &it, NULL) == 0);
  CHECK(setitimer(ITIMER_VIRTUAL, &it, NULL) == 0);
  printf("%d %d\n", (int)prof, (int)virt);
  guest_ok("sig_itimer_prof");
}
