// build: -O1
// beyond
// Proves: plain loads of a flag that another thread stores decide which locks are taken, and how often;
// with checkpoints a follower that has found something else goes back and is right, or it is reported.
// argv[1]: threads beside the first one (default 2), argv[2]: rounds of the first one.
#include "guest.h"
#include <pthread.h>
#define MOST 16

static volatile uint64_t flag;
static volatile int over;
static pthread_mutex_t own[MOST + 1], found = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seen[MOST + 1], polls[MOST + 1];

static void work(uint64_t *seed, uint64_t turns) {
  for (uint64_t i = 0; i < turns; i++)
    guest_rand(seed);
}

static void *poll(void *arg) {
  size_t me = (uintptr_t)arg;
  uint64_t last = 0, seed = me;
  while (!over) {
    pthread_mutex_lock(&own[me]);
    polls[me]++;
    pthread_mutex_unlock(&own[me]);
    work(&seed, 2000 + guest_rand(&seed) % 2000);
    uint64_t now = flag;
    if (now == last)
      continue;
    last = now;
    pthread_mutex_lock(&found);
    seen[me]++;
    pthread_mutex_unlock(&found);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2, rounds = argc > 2 ? atoi(argv[2]) : 1000;
  CHECK(threads > 0 && threads <= MOST);
  pthread_t t[MOST];
  uint64_t seed = 99;
  for (int i = 0; i <= threads; i++)
    pthread_mutex_init(&own[i], NULL);
  for (int i = 0; i < threads; i++)
    CHECK(!pthread_create(&t[i], NULL, poll, (void *)(uintptr_t)(i + 1)));
  for (int i = 0; i < rounds; i++) {
    work(&seed, 100000 + guest_rand(&seed) % 100000);
    pthread_mutex_lock(&own[0]);
    polls[0]++;
    pthread_mutex_unlock(&own[0]);
    flag = i + 1;
    work(&seed, 1000);
  }
  over = 1;
  for (int i = 0; i < threads; i++)
    CHECK(!pthread_join(t[i], NULL));
  for (int i = 1; i <= threads; i++)
    printf("%d: %llu seen, %llu polls\n", i, (unsigned long long)seen[i], (unsigned long long)polls[i]);
  printf("%llu rounds\n", (unsigned long long)polls[0]);
  guest_ok("race_flag");
}
