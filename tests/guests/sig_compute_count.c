// build:
// descends
// loses
// Proves: a signal reaches a thread that makes no call, after the same round of its loop in every
// replica: the count at which the handler found it is printed, in registers, in memory, and in a loop that counts in an outer one.
#include "guest.h"
#include <signal.h>
#include <sys/time.h>
static volatile sig_atomic_t stop;
static volatile uint64_t global;
static void on(int s) {
  (void)s;
  stop = 1;
}
static void arm(int us) {
  struct itimerval it = {{0, 0}, {0, us}};
  stop = 0;
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
}
int main(void) {
  CHECK(signal(SIGALRM, on) != SIG_ERR);
  arm(30000);
  uint64_t n = 0;
  while (!stop)
    n++;
  printf("in a register: %llu\n", (unsigned long long)n);
  arm(30000);
  while (!stop)
    global++;
  printf("in memory: %llu\n", (unsigned long long)global);
  arm(30000);
  static uint64_t cells[4096];
  uint64_t rounds = 0;
  while (!stop) {
    for (int i = 0; i < 4096; i++)
      cells[i] = cells[i] * 6364136223846793005ull + (uint64_t)i;
    rounds++;
  }
  uint64_t h = 0;
  for (int i = 0; i < 4096; i++)
    h = guest_mix(h, cells[i]);
  printf("rounds: %llu %016llx\n", (unsigned long long)rounds,
         (unsigned long long)h);
  guest_ok("sig_compute_count");
}
