// build:
// loses
// not in data: what it prints are addresses, or is made of them
// Proves: threads are born and die while others do, each allocating: arena
// choice, stack cache and allocator order agree (address hashes printed).
#include "guest.h"
#include <pthread.h>
static void *leaf(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  void *p[16] = {0};
  for (int i = 0; i < 200; i++) {
    int k = guest_rand(&s) & 15;
    free(p[k]);
    p[k] = malloc(guest_rand(&s) % 4000);
    h = guest_mix(h, (uintptr_t)p[k]);
  }
  for (int i = 0; i < 16; i++)
    free(p[i]);
  return (void *)h;
}
static void *branch(void *arg) {
  uint64_t h = 0;
  for (int i = 0; i < 40; i++) {
    pthread_t t[2];
    for (int k = 0; k < 2; k++)
      CHECK(!pthread_create(&t[k], NULL, leaf, (void *)((uintptr_t)arg * 80 + i * 2 + k)));
    for (int k = 0; k < 2; k++) {
      void *r;
      CHECK(!pthread_join(t[k], &r));
      h = guest_mix(h, (uintptr_t)r);
    }
  }
  return (void *)h;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, branch, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    printf("branch %d %016llx\n", i, (unsigned long long)(uintptr_t)r);
  }
  guest_ok("th_storm_malloc");
}
