// build:
// varies
// loses
// Proves: the outcomes of trylock and timedlock under contention are an input:
// each thread prints how often it failed and a hash of where.
#include "guest.h"
#include <pthread.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared;
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0, busy = 0;
  for (int i = 0; i < 4000; i++) {
    int r;
    if (i % 4 == 0) {
      struct timespec ts;
      clock_gettime(CLOCK_REALTIME, &ts);
      ts.tv_nsec += 100000;
      if (ts.tv_nsec >= 1000000000) {
        ts.tv_nsec -= 1000000000;
        ts.tv_sec++;
      }
      r = pthread_mutex_timedlock(&m, &ts);
      CHECK(r == 0 || r == ETIMEDOUT);
    } else {
      r = pthread_mutex_trylock(&m);
      CHECK(r == 0 || r == EBUSY);
    }
    if (r == 0) {
      shared = guest_mix(shared, (uintptr_t)arg);
      guest_work(&s, 500);
      pthread_mutex_unlock(&m);
    } else {
      busy++;
      h = guest_mix(h, i);
    }
    guest_work(&s, 300);
  }
  printf("thread %lu failed %lu times, %016llx\n", (unsigned long)(uintptr_t)arg,
         (unsigned long)busy, (unsigned long long)h);
  return NULL;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("shared %016llx\n", (unsigned long long)shared);
  guest_ok("th_mutex_try_timed");
}
