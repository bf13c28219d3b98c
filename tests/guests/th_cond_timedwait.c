// build:
// loses
// Proves: timed waits end by time or by signal alike in all replicas; both
// clocks; the outcomes are printed.
#include "guest.h"
#include <pthread.h>
#include <time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c;
static int turn, stop;
static void *ticker(void *arg) {
  uint64_t s = 99;
  (void)arg;
  for (;;) {
    usleep(guest_rand(&s) % 2000);
    pthread_mutex_lock(&m);
    turn++;
    int end = stop;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    if (end)
      return NULL;
  }
}
int main(void) {
  pthread_condattr_t a;
  CHECK(!pthread_condattr_init(&a));
  CHECK(!pthread_condattr_setclock(&a, CLOCK_MONOTONIC));
  CHECK(!pthread_cond_init(&c, &a));
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, ticker, NULL));
  uint64_t h = 0;
  int late = 0;
  pthread_mutex_lock(&m);
  for (int i = 0; i < 300; i++) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_nsec += 1000000;
    if (ts.tv_nsec >= 1000000000) {
      ts.tv_nsec -= 1000000000;
      ts.tv_sec++;
    }
    int before = turn, r = 0;
    while (turn == before && r == 0)
      r = pthread_cond_timedwait(&c, &m, &ts);
    CHECK(r == 0 || r == ETIMEDOUT);
    late += r != 0;
    h = guest_mix(h, r * 1000 + turn);
  }
  stop = 1;
  pthread_mutex_unlock(&m);
  CHECK(!pthread_join(t, NULL));
  struct timespec past = {0, 0};
  pthread_cond_t d = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&m);
  CHECK(pthread_cond_timedwait(&d, &m, &past) == ETIMEDOUT);
  pthread_mutex_unlock(&m);
  printf("late %d hash %016llx\n", late, (unsigned long long)h);
  guest_ok("th_cond_timedwait");
}
