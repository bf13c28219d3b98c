// build:
// Proves: a million clock readings keep the log's back-pressure honest; what
// was read is hashed and printed.
#include "guest.h"
#include <time.h>
#define READINGS 1000000
int main(void) {
  uint64_t h = 0;
  struct timespec ts;
  for (int i = 0; i < READINGS; i++) {
    clock_gettime(CLOCK_MONOTONIC, &ts);
    h = guest_mix(h, ts.tv_nsec);
  }
  printf("hash %016llx\n", (unsigned long long)h);
  guest_ok("time_calls_storm");
}
