// build: -O1
// beyond
// Proves: a counter that threads add to without a lock, between locks of their own, and that is printed again and
// again; with checkpoints a follower that has counted otherwise goes back and is right, or it is reported.
// argv[1]: threads (default 3), argv[2]: rounds of each.
#include "guest.h"
#include <pthread.h>
#define MOST 16
#define PRINTED 200

static volatile uint64_t counter;
static pthread_mutex_t own[MOST];
static int rounds = 20000;

static void *count(void *arg) {
  size_t me = (uintptr_t)arg;
  uint64_t seed = me + 1;
  for (int i = 0; i < rounds; i++) {
    for (uint64_t k = guest_rand(&seed) % 8000; k; k--)
      guest_rand(&seed);
    pthread_mutex_lock(&own[me]);
    counter = guest_mix(counter, me);
    pthread_mutex_unlock(&own[me]);
    if (me == 0 && i % PRINTED == 0) {
      printf("%d: %016llx\n", i, (unsigned long long)counter);
      fflush(stdout);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 3;
  if (argc > 2)
    rounds = atoi(argv[2]);
  CHECK(threads > 0 && threads <= MOST);
  pthread_t t[MOST];
  for (int i = 0; i < threads; i++)
    pthread_mutex_init(&own[i], NULL);
  for (int i = 1; i < threads; i++)
    CHECK(!pthread_create(&t[i], NULL, count, (void *)(uintptr_t)i));
  count((void *)0);
  for (int i = 1; i < threads; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx\n", (unsigned long long)counter);
  guest_ok("race_counter");
}
