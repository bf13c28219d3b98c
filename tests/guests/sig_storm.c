// build:
// deterministic
// descends
// Proves: a timer that rings faster than its handler runs under Geryon neither
// piles handler upon handler until the stack is full, nor keeps the program
// from its own work.
#include "guest.h"
#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static uintptr_t lowest = UINTPTR_MAX;
static void on_alarm(int n) {
  (void)n;
  char here;
  if ((uintptr_t)&here < lowest)
    lowest = (uintptr_t)&here;
  ticks++;
}

int main(void) {
  char here;
  struct sigaction a = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &a, 0) == 0);
  struct itimerval every = {{0, 100}, {0, 100}};
  CHECK(setitimer(ITIMER_REAL, &every, 0) == 0);
  const char *path = guest_tmp("storm");
  for (int i = 0; i < 300; i++) {
    struct stat s;
    FILE *f = fopen(path, "w");
    CHECK(f);
    CHECK(fputs("x", f) >= 0);
    CHECK(fclose(f) == 0);
    CHECK(stat(path, &s) == 0 && s.st_size == 1);
  }
  every.it_value.tv_usec = every.it_interval.tv_usec = 0;
  CHECK(setitimer(ITIMER_REAL, &every, 0) == 0);
  CHECK(unlink(path) == 0);
  CHECK(ticks > 0);
  // One handler at a time: it blocks its own signal.
  CHECK((uintptr_t)&here - lowest < 256 * 1024);
  guest_ok("sig_storm");
}
