// build:
// loses
// Proves: process-directed timer signals among four working threads land in
// the same thread at the same point; the handler counts per thread.
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static __thread volatile sig_atomic_t mine;
static uint64_t shared;
static void on(int s) {
  (void)s;
  mine++;
}
static void *work(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1;
  int seen = 0;
  for (int i = 0; i < 20000; i++) {
    pthread_mutex_lock(&m);
    shared = guest_mix(shared, (uintptr_t)arg + (mine != seen ? 100 : 0));
    seen = mine;
    pthread_mutex_unlock(&m);
    guest_work(&seed, 50);
  }
  return (void *)(intptr_t)mine;
}
int main(void) {
  struct sigaction sa = {.sa_handler = on, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  struct itimerval it = {{0, 2000}, {0, 2000}};
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
  pthread_t t[4];
  for (intptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *n;
    CHECK(!pthread_join(t[i], &n));
    printf("thread %d: %ld\n", i, (long)(intptr_t)n);
  }
  printf("shared %016llx\n", (unsigned long long)shared);
  guest_ok("sig_threads_itimer");
}
