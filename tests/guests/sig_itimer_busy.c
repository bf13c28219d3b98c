// build:
// loses
// Proves: SIGALRM during computation is delivered at the same point in every
// replica: the handler hashes how far the loop (with calls) had come.
#include "guest.h"
#include <signal.h>
#include <sys/time.h>
static volatile uint64_t progress;
static volatile sig_atomic_t hits;
static volatile uint64_t h;
static void on(int s) {
  (void)s;
  hits++;
  h = guest_mix(h, progress);
}
int main(void) {
  struct sigaction sa = {.sa_handler = on, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  struct itimerval it = {{0, 3000}, {0, 3000}};
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
  while (hits < 40) {
    progress++;
    (void)getppid();
  }
  memset(&it, 0, sizeof it);
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
  printf("hits %d progress %llu hash %016llx\n", (int)hits,
         (unsigned long long)progress, (unsigned long long)h);
  guest_ok("sig_itimer_busy");
}
