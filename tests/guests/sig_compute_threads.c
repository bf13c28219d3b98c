// build: -pthread
// args: 2
// args: 0
// loses
// Proves: a leader may be lost while all of its threads compute: its successor leads although none of them makes a call, and its
// timer rings there. Main computes until it does, and the others for a while.
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
enum { THREADS = 4, ROUNDS = 100000000 };
static volatile sig_atomic_t stop;
static void on(int s) {
  (void)s;
  stop = 1;
}
static void *compute(void *seed) {
  uint64_t x = (uintptr_t)seed;
  for (int i = 0; i < ROUNDS; i++)
    x = x * 6364136223846793005ull + 1;
  return (void *)(uintptr_t)x;
}
int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  CHECK(threads <= THREADS);
  CHECK(signal(SIGALRM, on) != SIG_ERR);
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
    CHECK(pthread_create(&t[i], NULL, compute, (void *)i) == 0);
  struct itimerval it = {{0, 0}, {0, 30000}};
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
  while (!stop)
    ;
  uint64_t h = 0;
  for (int i = 0; i < threads; i++) {
    void *x;
    CHECK(pthread_join(t[i], &x) == 0);
    h = guest_mix(h, (uintptr_t)x);
  }
  printf("%016llx\n", (unsigned long long)h);
  guest_ok("sig_compute_threads");
}
