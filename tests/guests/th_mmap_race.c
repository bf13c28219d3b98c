// build:
// not in data: what it prints are addresses, or is made of them
// varies
// loses
// Proves: racing mmap and munmap of several threads get the same addresses in
// every replica (the memory clock).
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  for (int i = 0; i < 1500; i++) {
    size_t n = (1 + guest_rand(&s) % 40) * 4096;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && p[n - 1] == 0);
    p[0] = 1;
    h = guest_mix(h, (uintptr_t)p);
    guest_work(&s, 300);
    CHECK(munmap(p, n) == 0);
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
  guest_ok("th_mmap_race");
}
