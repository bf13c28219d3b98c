// build: -O1
// deterministic
// not in clocks: all threads run at once there, and nobody waits for a turn
// Proves: threads that compute for some 10 ms between two calls or locks, in loops without an instruction that has room for
// a jump, are not stopped in each round of them for the sake of others who wait for the turn: it took 20 s and more.
#include "guest.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 3, ROUNDS = 20, LIMIT_S = 15 };
static pthread_mutex_t own[THREADS];
static uint64_t sums[THREADS];

static void *run(void *arg) {
  size_t me = (uintptr_t)arg;
  for (int i = 0; i < ROUNDS; i++) {
    for (uint64_t k = 15000000; k; k--)
      __asm__ volatile("");
    pthread_mutex_lock(&own[me]);
    sums[me] = guest_mix(sums[me], i);
    pthread_mutex_unlock(&own[me]);
  }
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  time_t start = time(NULL);
  for (size_t i = 0; i < THREADS; i++) {
    pthread_mutex_init(&own[i], NULL);
    CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
  }
  for (int i = 0; i < THREADS; i++) {
    CHECK(!pthread_join(t[i], NULL));
    CHECK(sums[i] == sums[0]);
  }
  CHECK(time(NULL) - start < LIMIT_S);
  printf("sum %llx\n", (unsigned long long)sums[0]);
  guest_ok("serial_short_rounds");
}
