// build:
// deterministic
// loses
// Proves: sleeping calls take their time once, not once for each replica, and
// time does not run backwards.
#include "guest.h"
#include <time.h>
static double now(void) {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return ts.tv_sec + ts.tv_nsec / 1e9;
}
int main(void) {
  double t0 = now();
  struct timespec ts = {0, 50000000};
  CHECK(nanosleep(&ts, NULL) == 0);
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL) == 0);
  clock_gettime(CLOCK_REALTIME, &ts);
  ts.tv_nsec += 30000000;
  if (ts.tv_nsec >= 1000000000) {
    ts.tv_sec++;
    ts.tv_nsec -= 1000000000;
  }
  CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &ts, NULL) == 0);
  CHECK(usleep(20000) == 0);
  double took = now() - t0, last = now();
  CHECK(took > 0.14 && took < 5.0);
  for (int i = 0; i < 20000; i++) {
    double t = now();
    CHECK(t >= last);
    last = t;
  }
  guest_ok("time_sleep");
}
