// build: -O2
// varies
// delayed
// Proves: a function that looks at a word and waits for its futex, without an atomic instruction of its own, finds in all
// replicas what it finds in the leader: Rust's locks, where the compiler left that function by itself.
#include "guest.h"
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 400 };
// 0: free, 1: held, 2: held, and somebody waits.
static _Atomic uint32_t *state;
static uint64_t order;

__attribute__((noipa)) static int futex_wait(_Atomic uint32_t *word, uint32_t expected) {
  for (;;) {
    if (atomic_load_explicit(word, memory_order_relaxed) != expected)
      return 1;
    long r = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, NULL, NULL, -1);
    if (r >= 0 || errno != EINTR)
      return 1;
  }
}

__attribute__((noipa)) static void lock_contended(_Atomic uint32_t *word) {
  while (atomic_exchange_explicit(word, 2, memory_order_acquire))
    futex_wait(word, 2);
}

static void lock(_Atomic uint32_t *word) {
  uint32_t is_free = 0;
  if (!atomic_compare_exchange_strong(word, &is_free, 1))
    lock_contended(word);
}

static void unlock(_Atomic uint32_t *word) {
  if (atomic_exchange_explicit(word, 0, memory_order_release) == 2)
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
}

static void *body(void *arg) {
  for (int i = 0; i < ROUNDS; i++) {
    lock(state);
    order = guest_mix(order, (uint64_t)(uintptr_t)arg * ROUNDS + i);
    if (i % 4 == 0)
      sched_yield();
    unlock(state);
  }
  return arg;
}

int main(void) {
  CHECK((state = calloc(1, 64)));
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx\n", (unsigned long long)order);
  guest_ok("load_futex_call");
}
