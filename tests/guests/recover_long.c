// build:
// args: steps 20
// deterministic
// loses
// Proves: a long computation of four threads that pass their results on gives the
// same result however long it takes; tests of recovery kill replicas meanwhile.
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <time.h>
#define THREADS 4
#define WORDS 4096

static uint64_t words[THREADS][WORDS];
static pthread_barrier_t meeting;
static long steps, seconds;
static int over;

static long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec;
}

static void *work(void *arg) {
  long me = (long)(intptr_t)arg;
  long end = now() + seconds;
  uint64_t state = (uint64_t)me + 1;
  for (long step = 1; !over; step++) {
    for (int i = 0; i < 500000; i++) {
      uint64_t r = guest_rand(&state);
      words[me][r % WORDS] = guest_mix(words[me][r % WORDS], r);
    }
    pthread_barrier_wait(&meeting);
    // From the neighbour, which has come as far.
    state ^= words[(me + 1) % THREADS][step % WORDS] | 1;
    if (me == 0) {
      over = seconds ? now() >= end : step == steps;
      if (over)
        steps = step;
    }
    pthread_barrier_wait(&meeting);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  if (strcmp(argv[1], "seconds") == 0)
    seconds = atol(argv[2]);
  else
    steps = atol(argv[2]);
  CHECK((seconds > 0) != (steps > 0));
  CHECK(pthread_barrier_init(&meeting, NULL, THREADS) == 0);
  pthread_t t[THREADS];
  for (long k = 0; k < THREADS; k++)
    CHECK(pthread_create(&t[k], NULL, work, (void *)(intptr_t)k) == 0);
  for (int k = 0; k < THREADS; k++)
    CHECK(pthread_join(t[k], NULL) == 0);
  printf("%ld\n%016llx\n", steps, (unsigned long long)guest_hash(0, words, sizeof words));
  guest_ok("recover_long");
}
