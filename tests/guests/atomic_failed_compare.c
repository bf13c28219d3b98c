// build:
// loses
// delayed
// Proves: a compare-and-swap that fails is an acquire. A cell's data is stored plainly and published by
// an exchange; a reader's compare fails on the published value, and so it may read the data. A follower
// that takes the value from the log before its own writer has come there reads stale data.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { CELLS = 4000, WRITERS = 2, READERS = 2 };
static struct {
  _Alignas(64) _Atomic uint64_t state;
  uint64_t data[4];
} cells[CELLS];

static uint64_t expected(int cell, int i) {
  return guest_mix(guest_mix(1, cell), i);
}

static void *writer(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1;
  for (int c = (uintptr_t)arg; c < CELLS; c += WRITERS) {
    guest_work(&seed, guest_rand(&seed) % 400);
    for (int i = 0; i < 4; i++)
      cells[c].data[i] = expected(c, i);
    atomic_exchange(&cells[c].state, 1);
  }
  return NULL;
}

static void *reader(void *arg) {
  uint64_t empty = 0, h = (uintptr_t)arg;
  for (int c = 0; c < CELLS; c++)
    for (;;) {
      uint64_t seen = 2; // Never stored: each compare fails.
      CHECK(!atomic_compare_exchange_strong(&cells[c].state, &seen, 3));
      if (seen == 1)
        break;
      CHECK(seen == 0);
      if (++empty % 64 == 0)
        usleep(50);
    }
  for (int c = 0; c < CELLS; c++)
    for (int i = 0; i < 4; i++) {
      CHECK(cells[c].data[i] == expected(c, i));
      h = guest_mix(h, cells[c].data[i]);
    }
  return (void *)h;
}

// Reads each cell as soon as it is there, and yields at times: in serial order nobody else runs while it
// spins.
static void *pursuer(void *arg) {
  uint64_t tries = 0, h = (uintptr_t)arg;
  for (int c = 0; c < CELLS; c++) {
    uint64_t seen;
    do {
      seen = 2;
      CHECK(!atomic_compare_exchange_strong(&cells[c].state, &seen, 3));
      if (++tries % 64 == 0)
        sched_yield();
    } while (seen != 1);
    for (int i = 0; i < 4; i++) {
      CHECK(cells[c].data[i] == expected(c, i));
      h = guest_mix(h, cells[c].data[i]);
    }
  }
  return (void *)h;
}

int main(void) {
  pthread_t w[WRITERS], r[READERS];
  for (uintptr_t i = 0; i < READERS; i++)
    CHECK(!pthread_create(&r[i], NULL, i % 2 ? reader : pursuer, (void *)i));
  for (uintptr_t i = 0; i < WRITERS; i++)
    CHECK(!pthread_create(&w[i], NULL, writer, (void *)i));
  for (int i = 0; i < WRITERS; i++)
    CHECK(!pthread_join(w[i], NULL));
  for (int i = 0; i < READERS; i++) {
    void *h;
    CHECK(!pthread_join(r[i], &h));
    printf("%016llx\n", (unsigned long long)(uintptr_t)h);
  }
  guest_ok("atomic_failed_compare");
}
