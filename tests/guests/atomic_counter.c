// build:
// varies
// descends
// loses
// Proves: raw fetch_add under contention: every thread hashes the values it
// drew, so the order of the atomics themselves matters.
#include "guest.h"
#include <pthread.h>
#include <stdatomic.h>
static atomic_ulong counter;
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  for (int i = 0; i < 50000; i++) {
    h = guest_mix(h, atomic_fetch_add(&counter, 1));
    guest_work(&s, 20);
  }
  return (void *)h;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    printf("%016llx\n", (unsigned long long)(uintptr_t)r);
  }
  CHECK(counter == 200000);
  guest_ok("atomic_counter");
}
