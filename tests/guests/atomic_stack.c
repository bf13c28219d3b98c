// build:
// varies
// loses
// Proves: a lock-free stack (compare-and-swap of pointer and tag): who pops
// which node is printed.
#include "guest.h"
#include <pthread.h>
#define NODES 64
static uint64_t head;
static uint32_t next[NODES + 1];
static uint64_t load(uint64_t *p) { return __sync_fetch_and_add(p, 0); }
static void push(uint32_t n) {
  uint64_t old = load(&head);
  for (;;) {
    __atomic_exchange_n(&next[n], (uint32_t)old, __ATOMIC_SEQ_CST);
    uint64_t seen = __sync_val_compare_and_swap(
        &head, old, (((old >> 32) + 1) << 32) | n);
    if (seen == old)
      return;
    old = seen;
  }
}
static uint32_t pop(void) {
  uint64_t old = load(&head);
  for (;;) {
    if ((uint32_t)old == 0)
      return 0;
    uint32_t n = __sync_fetch_and_add(&next[(uint32_t)old], 0);
    uint64_t seen = __sync_val_compare_and_swap(
        &head, old, (((old >> 32) + 1) << 32) | n);
    if (seen == old)
      return (uint32_t)old;
    old = seen;
  }
}
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  for (int i = 0; i < 8000; i++) {
    uint32_t n = pop();
    h = guest_mix(h, n);
    guest_work(&s, 100);
    if (n)
      push(n);
  }
  return (void *)h;
}
int main(void) {
  for (uint32_t i = 1; i <= NODES; i++)
    push(i);
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    printf("%016llx\n", (unsigned long long)(uintptr_t)r);
  }
  int n = 0;
  while (pop())
    n++;
  CHECK(n == NODES);
  guest_ok("atomic_stack");
}
