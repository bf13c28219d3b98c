// build:
// delayed
// descends
// loses
// Proves: a program that meets at barriers made of a mutex and a condition, whose waiters look at
// nothing when they wake (as in Splash-3's OCEAN), goes on when a replica is lost.
#include "guest.h"
#include <pthread.h>

enum { THREADS = 4, CELLS = 64 };
static struct {
  pthread_mutex_t lock;
  pthread_cond_t all;
  int arrived;
} barrier = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
static uint64_t grid[2][THREADS * CELLS];
static int rounds = 3000;

static void meet(void) {
  CHECK(!pthread_mutex_lock(&barrier.lock));
  if (++barrier.arrived == THREADS) {
    barrier.arrived = 0;
    CHECK(!pthread_cond_broadcast(&barrier.all));
  } else {
    CHECK(!pthread_cond_wait(&barrier.all, &barrier.lock));
  }
  CHECK(!pthread_mutex_unlock(&barrier.lock));
}

static void *body(void *arg) {
  int me = (uintptr_t)arg, n = THREADS * CELLS;
  uint64_t seed = me + 1;
  for (int r = 0; r < rounds; r++) {
    uint64_t *from = grid[r % 2], *to = grid[(r + 1) % 2];
    for (int i = me * CELLS; i < (me + 1) * CELLS; i++)
      to[i] = guest_mix(from[i], guest_mix(from[(i + 1) % n], from[(i + n - 1) % n]));
    guest_work(&seed, guest_rand(&seed) % 3000);
    meet();
    if (me == 0 && r % 500 == 499) {
      printf("%d %016llx\n", r + 1, (unsigned long long)to[0]);
      fflush(stdout);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t t[THREADS];
  if (argc > 1)
    rounds = atoi(argv[1]);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx\n", (unsigned long long)guest_hash(1, grid, sizeof grid));
  guest_ok("recover_barrier");
}
