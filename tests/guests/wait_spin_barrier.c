// build: -O2
// not in clocks: order decided by plain loads is not repeated there
// delayed
// args: 2 600
// args: 4 25
// loses
// Proves: a barrier whose threads poll a plain word: the last to come, whom an atomic counter chooses, stores it.
// Memory that a follower is late for has gone past what its leader saw: it goes on, and not before the data is there.
#include "guest.h"
#include <pthread.h>
#include <stdlib.h>

enum { MOST = 8 };
static int threads, rounds;
static volatile int sense;
static int arrived;
static uint64_t cells[MOST], polls[MOST], lasts[MOST];

static void barrier(int who, int *mine) {
  *mine = !*mine;
  if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == threads) {
    lasts[who]++;
    arrived = 0;
    sense = *mine;
    return;
  }
  uint64_t n = 0;
  while (sense != *mine) {
    __builtin_ia32_pause();
    n++;
  }
  polls[who] += n;
}

static void *run(void *arg) {
  int who = (int)(long)arg, mine = 0;
  for (int i = 0; i < rounds; i++) {
    cells[who] = guest_mix(cells[who], i);
    barrier(who, &mine);
    uint64_t left = cells[(who + 1) % threads];
    barrier(who, &mine);
    cells[who] = guest_mix(cells[who], left);
  }
  return arg;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  threads = atoi(argv[1]);
  rounds = atoi(argv[2]);
  CHECK(threads <= MOST);
  pthread_t t[MOST];
  for (long i = 1; i < threads; i++)
    CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
  run(NULL);
  for (int i = 1; i < threads; i++)
    CHECK(!pthread_join(t[i], NULL));
  uint64_t expected[MOST] = {0};
  for (int i = 0; i < rounds; i++) {
    uint64_t old[MOST];
    for (int k = 0; k < threads; k++)
      old[k] = guest_mix(expected[k], i);
    for (int k = 0; k < threads; k++)
      expected[k] = guest_mix(old[k], old[(k + 1) % threads]);
  }
  for (int k = 0; k < threads; k++) {
    CHECK(cells[k] == expected[k]);
    printf("%llu polls, last %llu times\n", (unsigned long long)polls[k], (unsigned long long)lasts[k]);
  }
  guest_ok("wait_spin_barrier");
}
