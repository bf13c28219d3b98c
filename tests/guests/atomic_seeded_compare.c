// build: -mcx16
// loses
// delayed: 500
// Proves: compares whose expected value comes from a plain load (as gcc makes of an atomic or whose result
// is used, and as programs make of everything else) are repeated, however early or late a follower loads.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 4, NODES = THREADS * 64 };
static int rounds = 4000;
static _Atomic uint32_t bits;
static _Atomic uint64_t sum;
static struct {
  uint32_t next;
  uint64_t value;
} nodes[NODES + 1];
static union {
  volatile uint64_t half[2];
  unsigned __int128 whole;
} pair;
static _Atomic uint64_t top; // A count, and the index of a node.

static void push(uint32_t n) {
  uint64_t t = atomic_load(&top);
  do
    nodes[n].next = (uint32_t)t;
  while (!atomic_compare_exchange_weak(&top, &t, ((t >> 32) + 1) << 32 | n));
}

static uint32_t pop(void) {
  uint64_t t = atomic_load(&top);
  while ((uint32_t)t) {
    uint32_t next = nodes[(uint32_t)t].next;
    if (atomic_compare_exchange_weak(&top, &t, ((t >> 32) + 1) << 32 | next))
      break;
  }
  return (uint32_t)t;
}

static void *body(void *arg) {
  uint32_t me = (uintptr_t)arg;
  uint64_t seed = me + 1, h = me;
  for (int r = 0; r < rounds; r++) {
    guest_work(&seed, guest_rand(&seed) % 100);
    h = guest_mix(h, atomic_fetch_xor(&bits, 1u << (guest_rand(&seed) % 32)));
    uint64_t s = atomic_load(&sum);
    if (r % 16 == 0)
      sched_yield();
    while (!atomic_compare_exchange_strong(&sum, &s, guest_mix(s, h)))
      ;
    for (;;) {
      // The halves may be of different moments: then it fails.
      uint64_t low = pair.half[0], high = pair.half[1];
      unsigned __int128 was = (unsigned __int128)high << 64 | low;
      unsigned __int128 now = (unsigned __int128)(high + 1) << 64 | guest_mix(low, h);
      if (__sync_bool_compare_and_swap(&pair.whole, was, now))
        break;
    }
    uint32_t n = pop();
    if (n) {
      nodes[n].value = guest_mix(nodes[n].value, h);
      push(n);
    }
  }
  return (void *)h;
}

int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  pthread_t t[THREADS];
  for (uint32_t n = 1; n <= NODES; n++)
    push(n);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  uint64_t h = 0;
  for (int i = 0; i < THREADS; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    h = guest_mix(h, (uintptr_t)r);
  }
  CHECK(pair.half[1] == (uint64_t)THREADS * rounds);
  h = guest_mix(guest_mix(h, atomic_load(&sum)), pair.half[0]);
  for (int n = 1; n <= NODES; n++)
    h = guest_mix(h, nodes[n].value);
  // To where the replicas are compared, and nobody reads it.
  FILE *f = fopen("/dev/null", "w");
  CHECK(f);
  fprintf(f, "%016llx\n", (unsigned long long)h);
  CHECK(!fclose(f));
  guest_ok("atomic_seeded_compare");
}
