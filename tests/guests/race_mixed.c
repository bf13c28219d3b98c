// build: -O1
// beyond
// Proves: racey (Xu, Bodik and Hill) as it is meant, without a lock around what threads share; each takes a lock of
// its own now and then, and the first one prints. With checkpoints a follower that has mixed in another order
// goes back and is right, or it is reported.
// argv[1]: threads (default 3), argv[2]: rounds of each, argv[3]: steps between two locks.
#include "guest.h"
#include <pthread.h>
#define MOST 16
#define CELLS 64
#define PRINTED 200

static volatile uint64_t cell[CELLS];
static pthread_mutex_t own[MOST];
static int rounds = 10000, steps = 4;

static void *mix(void *arg) {
  size_t me = (uintptr_t)arg;
  uint64_t seed = me + 1, sig = me;
  for (int i = 0; i < rounds; i++) {
    for (uint64_t k = guest_rand(&seed) % 16000; k; k--)
      guest_rand(&seed);
    pthread_mutex_lock(&own[me]);
    pthread_mutex_unlock(&own[me]);
    for (int s = 0; s < steps; s++) {
      uint64_t a = cell[(me * 7 + sig) % CELLS];
      volatile uint64_t *b = &cell[a % CELLS];
      *b = guest_mix(*b ^ a, sig + me);
      sig = guest_mix(sig, *b);
    }
    if (me == 0 && i % PRINTED == 0) {
      printf("%d: %016llx\n", i, (unsigned long long)sig);
      fflush(stdout);
    }
  }
  return (void *)sig;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 3;
  if (argc > 2)
    rounds = atoi(argv[2]);
  if (argc > 3)
    steps = atoi(argv[3]);
  CHECK(threads > 0 && threads <= MOST);
  pthread_t t[MOST];
  for (int i = 0; i < CELLS; i++)
    cell[i] = i * 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < threads; i++)
    pthread_mutex_init(&own[i], NULL);
  for (int i = 1; i < threads; i++)
    CHECK(!pthread_create(&t[i], NULL, mix, (void *)(uintptr_t)i));
  uint64_t sig = (uintptr_t)mix((void *)0);
  for (int i = 1; i < threads; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    sig = guest_mix(sig, (uintptr_t)r);
  }
  printf("%016llx\n", (unsigned long long)sig);
  guest_ok("race_mixed");
}
