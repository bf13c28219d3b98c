// build:
// loses
// delayed
// Proves: of the threads that meet at a pthread barrier one, and only one, is told in each round that it is
// the last, also when the leader is lost among them.
#include "guest.h"
#include <pthread.h>

enum { THREADS = 4, CELLS = 64, SIZE = THREADS * CELLS };
static uint64_t grid[2][SIZE];
static pthread_barrier_t all;
static int rounds = 300, last[2];

static void *body(void *arg) {
  int me = (uintptr_t)arg;
  uint64_t seed = me + 1;
  for (int r = 0; r < rounds; r++) {
    uint64_t *from = grid[r % 2], *to = grid[(r + 1) % 2];
    for (int i = me * CELLS; i < (me + 1) * CELLS; i++)
      to[i] = guest_mix(from[i], guest_mix(from[(i + 1) % SIZE], from[(i + SIZE - 1) % SIZE]));
    guest_work(&seed, guest_rand(&seed) % 3000);
    int told = pthread_barrier_wait(&all);
    CHECK(told == 0 || told == PTHREAD_BARRIER_SERIAL_THREAD);
    if (told)
      __atomic_fetch_add(&last[r % 2], 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&all);
    if (me == 0) {
      CHECK(last[r % 2] == 1);
      last[r % 2] = 0;
      if (r % 100 == 99) {
        printf("%d %016llx\n", r + 1, (unsigned long long)to[0]);
        fflush(stdout);
      }
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  CHECK(!pthread_barrier_init(&all, NULL, THREADS));
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx\n", (unsigned long long)guest_hash(1, grid, sizeof grid));
  guest_ok("recover_serial_thread");
}
