// build:
// args: 4 20
// deterministic
// loses
// Proves: CPU-bound threads (argv[1], default 4) without any call or lock,
// argv[2] million steps each (default 200); prints a checksum.
#include "guest.h"
#include <pthread.h>
static long steps = 200;
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  double x = 1;
  for (long i = 0; i < steps * 1000000; i++) {
    h += guest_rand(&s) & 0xffff;
    x = x * 0.999 + (double)(h & 7);
  }
  return (void *)(h ^ (uint64_t)(x * 1e6));
}
int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 4;
  if (argc > 2)
    steps = atol(argv[2]);
  CHECK(threads > 0 && threads <= 64);
  pthread_t t[64];
  uint64_t h = 0;
  for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < threads; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    h = guest_mix(h, (uintptr_t)r);
  }
  printf("checksum %016llx\n", (unsigned long long)h);
  guest_ok("compute");
}
