// build:
// varies
// descends
// loses
// Proves: a lock of one's own on futex (Drepper's second mutex): no library
// entry to rewrite; order comes from the atomics alone.
#include "guest.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
static int word;
static uint64_t shared;
static long count;
static long futex(int *p, int op, int v) {
  return syscall(SYS_futex, p, op | FUTEX_PRIVATE_FLAG, v, NULL, NULL, 0);
}
static void lock(void) {
  int c = __sync_val_compare_and_swap(&word, 0, 1);
  if (c == 0)
    return;
  if (c != 2)
    c = __atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE);
  while (c != 0) {
    futex(&word, FUTEX_WAIT, 2);
    c = __atomic_exchange_n(&word, 2, __ATOMIC_ACQUIRE);
  }
}
static void unlock(void) {
  if (__atomic_fetch_sub(&word, 1, __ATOMIC_RELEASE) != 1) {
    __atomic_exchange_n(&word, 0, __ATOMIC_RELEASE);
    futex(&word, FUTEX_WAKE, 1);
  }
}
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1;
  for (int i = 0; i < 10000; i++) {
    lock();
    shared = guest_mix(shared, (uintptr_t)arg);
    count++;
    unlock();
    guest_work(&s, 150);
  }
  return NULL;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(count == 40000);
  printf("shared %016llx\n", (unsigned long long)shared);
  guest_ok("atomic_futex_mutex");
}
