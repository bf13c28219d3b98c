// build:
// loses
// delayed
// varies
// Proves: a lock that threads spin for by exchanging, given back by a plain store in another function: in a follower that store
// may come before the exchanges that found the lock taken. And a word that is read by adding nothing, stored plainly.
#include "guest.h"
#include <pthread.h>
#define THREADS 4
#define ROUNDS 300

struct lock {
  uint32_t pad[3], word;
};
static struct lock *lock;
static uint64_t sum, seen[THREADS], *turn;

__attribute__((noipa)) static void take(uint32_t *word) {
  uint32_t one;
  do {
    one = 1;
    __asm__ volatile("xchg %0, %1" : "+r"(one), "+m"(*word)::"memory");
    if (one)
      __asm__ volatile("pause");
  } while (one);
}

__attribute__((noipa)) static void give(uint32_t *word) {
  __asm__ volatile("movl $0, %0" : "=m"(*word)::"memory");
}

__attribute__((noipa)) static uint64_t look(uint64_t *word) {
  uint64_t nothing = 0;
  __asm__ volatile("lock xadd %0, %1" : "+r"(nothing), "+m"(*word)::"memory");
  return nothing;
}

__attribute__((noipa)) static void store(uint64_t *word, uint64_t value) {
  __asm__ volatile("movq %1, %0" : "=m"(*word) : "r"(value) : "memory");
}

static void *work(void *arg) {
  uint64_t me = (uintptr_t)arg;
  for (uint64_t i = 0; i < ROUNDS; i++) {
    take(&lock->word);
    for (int k = 0; k < 300; k++)
      sum = guest_mix(sum, me);
    give(&lock->word);
    if (i % 16 == 0)
      seen[me] = guest_mix(seen[me], look(turn));
    if (me == 0)
      store(turn, i);
  }
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  CHECK((lock = calloc(1, sizeof *lock)) && (turn = calloc(1, 64)));
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx\n", (unsigned long long)sum);
  for (int i = 0; i < THREADS; i++)
    printf("%016llx\n", (unsigned long long)seen[i]);
  guest_ok("spin_apart");
}
