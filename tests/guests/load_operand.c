// build: -pthread -O2
// varies
// loses
// Proves: what an atomic instruction adds, and was loaded from a word that others change, is what the leader's has added (x265's
// count of threads at work, of which each adds up what it sees).
#include "guest.h"
#include <pthread.h>
#include <sched.h>

enum { THREADS = 3, ROUNDS = 20000 };

static struct work {
  char other[64];
  int active;
  int seen;
  int samples;
} work;

__attribute__((noipa)) static void change(int *count, int by) { __atomic_fetch_add(count, by, __ATOMIC_SEQ_CST); }

__attribute__((noipa)) static void sample(struct work *w) {
  __atomic_fetch_add(&w->seen, __atomic_load_n(&w->active, __ATOMIC_RELAXED), __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&w->samples, 1, __ATOMIC_SEQ_CST);
}

static void *compute(void *arg) {
  uint64_t seed = (uintptr_t)arg;
  for (int i = 0; i < ROUNDS; i++) {
    change(&work.active, 1);
    if (guest_rand(&seed) % 128 == 0)
      sched_yield();
    sample(&work);
    change(&work.active, -1);
  }
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, compute, (void *)(i + 1)) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  CHECK(work.samples == THREADS * ROUNDS && work.active == 0 && work.seen >= work.samples);
  printf("%d\n", work.seen);
  guest_ok("load_operand");
}
