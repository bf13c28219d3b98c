// build:
// loses
// delayed
// Proves: threads that meet in locks and conditions of their own on futex calls, as those of Rust's std are
// made, go on when a replica is lost.
#include "guest.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

enum { THREADS = 4, CELLS = 64, SIZE = THREADS * CELLS };
static uint64_t grid[2][SIZE];
static int rounds = 300;

static void futex(unsigned *p, int op, unsigned v) {
  // (No time limit. Rust's std waits with a bit set.)
  syscall(SYS_futex, p, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL, ~0u);
}

// 0 free, 1 taken, 2 taken and waited for.
struct mutex {
  unsigned word;
};
static void lock(struct mutex *m) {
  unsigned c = 0;
  if (__atomic_compare_exchange_n(&m->word, &c, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  while (__atomic_exchange_n(&m->word, 2, __ATOMIC_ACQUIRE) != 0)
    futex(&m->word, FUTEX_WAIT_BITSET, 2);
}
static void unlock(struct mutex *m) {
  if (__atomic_exchange_n(&m->word, 0, __ATOMIC_RELEASE) == 2)
    futex(&m->word, FUTEX_WAKE, 1);
}

// A number of signals.
struct condition {
  unsigned word;
};
static void wait_for(struct condition *c, struct mutex *m) {
  unsigned seen = __atomic_fetch_add(&c->word, 0, __ATOMIC_RELAXED);
  unlock(m);
  futex(&c->word, FUTEX_WAIT_BITSET, seen);
  lock(m);
}
static void signal_all(struct condition *c) {
  __atomic_fetch_add(&c->word, 1, __ATOMIC_RELAXED);
  futex(&c->word, FUTEX_WAKE, THREADS);
}

static struct mutex gate;
static struct condition opened;
static int arrived, generation;

static void meet(void) {
  lock(&gate);
  int mine = generation;
  if (++arrived == THREADS) {
    arrived = 0;
    generation++;
    signal_all(&opened);
  } else {
    while (generation == mine)
      wait_for(&opened, &gate);
  }
  unlock(&gate);
}

static void *body(void *arg) {
  int me = (uintptr_t)arg;
  uint64_t seed = me + 1;
  for (int r = 0; r < rounds; r++) {
    uint64_t *from = grid[r % 2], *to = grid[(r + 1) % 2];
    for (int i = me * CELLS; i < (me + 1) * CELLS; i++)
      to[i] = guest_mix(from[i], guest_mix(from[(i + 1) % SIZE], from[(i + SIZE - 1) % SIZE]));
    guest_work(&seed, guest_rand(&seed) % 3000);
    meet();
    if (me == 0 && r % 100 == 99) {
      printf("%d %016llx\n", r + 1, (unsigned long long)to[0]);
      fflush(stdout);
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx\n", (unsigned long long)guest_hash(1, grid, sizeof grid));
  guest_ok("recover_futex");
}
