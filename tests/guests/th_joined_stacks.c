// build:
// deterministic
// descends
// loses
// Proves: a thread that has ended is gone for every replica once the run has gone over from clocks to
// serial order, also where the first thread makes new ones on the stacks of those. (The leader looked at
// the id words of the ended ones with no record of that; a copy made before looked later, found the new
// threads' ids there, and waited for their end.)
#include "guest.h"
#include <pthread.h>
#include <time.h>

#define ROUNDS 40
#define THREADS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum;

static void *worker(void *arg) {
  for (int i = 0; i < 20; i++) {
    pthread_mutex_lock(&lock);
    sum += (uintptr_t)arg;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  struct timespec nap = {0, 4000000};
  for (int round = 0; round < ROUNDS; round++) {
    for (uintptr_t i = 0; i < THREADS; i++)
      CHECK(!pthread_create(&t[i], NULL, worker, (void *)i));
    for (int i = 0; i < THREADS; i++)
      CHECK(!pthread_join(t[i], NULL));
    // Here the run goes over, and copies are made, mostly.
    CHECK(!nanosleep(&nap, NULL));
  }
  printf("%lu\n", sum);
  guest_ok("th_joined_stacks");
}
