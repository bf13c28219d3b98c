// build:
// loses
// not in data: what it prints are addresses, or is made of them
// Proves: threads start and end alike: arguments, results, thread ids, stack
// addresses (printed) over many rounds, so glibc's stack cache must agree.
#include "guest.h"
#include <pthread.h>
#include <sys/syscall.h>
static void *body(void *arg) {
  int here;
  uint64_t h = guest_mix((uintptr_t)arg, (uintptr_t)&here);
  h = guest_mix(h, (uintptr_t)pthread_self());
  return (void *)guest_mix(h, syscall(SYS_gettid));
}
int main(void) {
  uint64_t h = 0;
  for (uintptr_t round = 0; round < 100; round++) {
    pthread_t t[5];
    for (uintptr_t i = 0; i < 5; i++)
      CHECK(!pthread_create(&t[i], NULL, body, (void *)(round * 5 + i)));
    for (int i = 0; i < 5; i++) {
      void *r;
      CHECK(!pthread_join(t[(i * 3) % 5], &r));
      h = guest_mix(h, (uintptr_t)r);
    }
  }
  printf("hash %016llx\n", (unsigned long long)h);
  guest_ok("th_create_join");
}
