// build: -O2
// loses
// not in clocks: order decided by plain loads is not repeated there
// delayed
// Proves: threads that wait for each other by plain words and by locks of their own, at none of which they come to a
// call, go on from where they stood when a replica is lost: a copy of one that looks for its turn looks anew.
#include "guest.h"
#include <pthread.h>

enum { THREADS = 3 };
static int rounds = 60, arrived, lock;
static volatile int sense;
static uint64_t cells[THREADS], total;

static void meet(int *mine) {
  *mine = !*mine;
  if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == THREADS) {
    arrived = 0;
    sense = *mine;
  }
  while (sense != *mine)
    __builtin_ia32_pause();
}

static void *run(void *arg) {
  int who = (int)(long)arg, mine = 0;
  uint64_t seed = who + 1;
  for (int i = 0; i < rounds; i++) {
    guest_work(&seed, guest_rand(&seed) % 2000);
    cells[who] = guest_mix(cells[who], i);
    meet(&mine);
    for (int k = 0; k < 20; k++) {
      while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        ;
      total += cells[(who + k) % THREADS];
      __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
    meet(&mine);
    if (who == 0 && i % 200 == 199) {
      printf("%d %016llx\n", i + 1, (unsigned long long)total);
      fflush(stdout);
    }
  }
  return arg;
}

int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  pthread_t t[THREADS];
  for (long i = 1; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, run, (void *)i));
  run(NULL);
  for (int i = 1; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  uint64_t sum = 0, all[THREADS] = {0};
  for (int i = 0; i < rounds; i++) {
    for (int who = 0; who < THREADS; who++)
      all[who] = guest_mix(all[who], i);
    for (int who = 0; who < THREADS; who++)
      for (int k = 0; k < 20; k++)
        sum += all[(who + k) % THREADS];
  }
  CHECK(sum == total);
  printf("%016llx %016llx\n", (unsigned long long)total, (unsigned long long)guest_hash(1, cells, sizeof cells));
  guest_ok("recover_looks");
}
