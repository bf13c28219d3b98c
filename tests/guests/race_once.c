// build: -O1
// beyond
// Proves: what is done once, by whoever finds first that it was not done, as a plain word says; with checkpoints a
// follower in which another thread was first goes back and is right, or it is reported. (In memory of the heap: a word at a
// fixed place that is asked and stored so is ordered, see load_made.)
// argv[1]: threads (default 3), argv[2]: rounds.
#include "guest.h"
#include <pthread.h>
#define MOST 16
#define ROUNDS 1000

static volatile int *done;
static int threads = 3, rounds = 20, times, first[MOST];
static pthread_mutex_t own[MOST], once = PTHREAD_MUTEX_INITIALIZER;

static void *run(void *arg) {
  size_t me = (uintptr_t)arg;
  uint64_t seed = me + 1;
  for (int i = 0; i < rounds; i++) {
    for (uint64_t k = 10000000 + guest_rand(&seed) % 10000000; k; k--)
      __asm__ volatile("");
    pthread_mutex_lock(&own[me]);
    pthread_mutex_unlock(&own[me]);
    if (!done[i]) {
      done[i] = 1;
      pthread_mutex_lock(&once);
      times++;
      first[me]++;
      printf("round %d: thread %zu\n", i, me);
      fflush(stdout);
      pthread_mutex_unlock(&once);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc > 1)
    threads = atoi(argv[1]);
  if (argc > 2)
    rounds = atoi(argv[2]);
  CHECK(threads > 0 && threads <= MOST && rounds <= ROUNDS);
  CHECK(done = calloc(ROUNDS, sizeof *done));
  pthread_t t[MOST];
  for (int i = 0; i < threads; i++)
    pthread_mutex_init(&own[i], NULL);
  for (int i = 1; i < threads; i++)
    CHECK(!pthread_create(&t[i], NULL, run, (void *)(uintptr_t)i));
  run((void *)0);
  for (int i = 1; i < threads; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(times >= rounds);
  printf("%d rounds\n", rounds);
  guest_ok("race_once");
}
