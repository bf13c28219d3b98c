// build: -pthread -O2
// varies
// loses
// delayed
// ascends
// Proves: threads that ask several flags over and over, which another thread changes now and then, find the same in every replica,
// each as often (a load that finds what it found before is counted, not logged), also when who leads is lost in the midst.
#include "guest.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, LINES = 30000, CHANGES = 300 };

static atomic_int unique, reverse, stable, wide;
static atomic_int ends;
static uint64_t seen[THREADS];
static long polls;

__attribute__((noipa)) static uint64_t compare(uint64_t a, uint64_t b) {
  uint64_t order = a - b;
  if (atomic_load_explicit(&unique, memory_order_relaxed) == 2)
    order ^= 1;
  if (atomic_load_explicit(&stable, memory_order_relaxed) == 2)
    order ^= 2;
  if (atomic_load_explicit(&reverse, memory_order_relaxed) == 2)
    order = -order;
  return order;
}

static void *sort(void *arg) {
  int me = (int)(intptr_t)arg;
  uint64_t seed = me + 1;
  for (int i = 0; i < LINES; i++) {
    uint64_t order = compare(guest_rand(&seed), guest_rand(&seed));
    seen[me] = guest_mix(seen[me], order);
    // Another word, seldom: more than are kept at a time.
    if (order % 1000 == 0)
      seen[me] = guest_mix(seen[me], atomic_load_explicit(&wide, memory_order_acquire) == 1);
  }
  return NULL;
}

// Polls two words.
static void *wait_for_end(void *unused) {
  (void)unused;
  while (atomic_load_explicit(&ends, memory_order_acquire) != 1)
    if (atomic_load_explicit(&wide, memory_order_relaxed) == 1)
      polls++;
  return NULL;
}

// One flag by an atomic instruction, the others by plain stores.
static void *change(void *unused) {
  (void)unused;
  for (int i = 0; i < CHANGES; i++) {
    struct timespec nap = {0, 20000};
    nanosleep(&nap, NULL);
    atomic_store_explicit(&unique, 1 + i % 2, memory_order_relaxed);
    atomic_fetch_xor(&stable, 2);
    if (i % 3 == 0)
      atomic_store_explicit(&reverse, 1 + i / 3 % 2, memory_order_release);
    if (i % 10 == 0)
      atomic_fetch_xor(&wide, 1);
  }
  return NULL;
}

int main(void) {
  pthread_t t[THREADS], changes, waits;
  // (On such words the file has atomic instructions.)
  atomic_fetch_add(&unique, 1);
  atomic_fetch_add(&reverse, 1);
  CHECK(!pthread_create(&changes, NULL, change, NULL) && !pthread_create(&waits, NULL, wait_for_end, NULL));
  for (intptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, sort, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  atomic_fetch_add(&ends, 1);
  CHECK(!pthread_join(waits, NULL) && !pthread_join(changes, NULL));
  for (int i = 0; i < THREADS; i++)
    printf("%016llx\n", (unsigned long long)seen[i]);
  printf("%ld\n", polls);
  guest_ok("load_row");
}
