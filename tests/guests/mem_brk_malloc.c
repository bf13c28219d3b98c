// build:
// loses
// not in data: what it prints are addresses, or is made of them
// Proves: the heap grows alike: sbrk, small, large and realigned allocations;
// the addresses are printed.
#include "guest.h"
#include <malloc.h>
int main(void) {
  uint64_t s = 7, h = 0;
  void *p[500] = {0};
  printf("break %p\n", sbrk(0));
  CHECK(sbrk(8192) != (void *)-1);
  for (int i = 0; i < 100000; i++) {
    int k = guest_rand(&s) % 500;
    size_t n = guest_rand(&s) % (i % 100 == 0 ? 400000 : 2000);
    switch (guest_rand(&s) % 4) {
    case 0:
      free(p[k]);
      p[k] = malloc(n);
      break;
    case 1:
      p[k] = realloc(p[k], n + 1);
      break;
    case 2:
      free(p[k]);
      p[k] = calloc(1, n);
      break;
    default:
      free(p[k]);
      p[k] = memalign(64, n);
    }
    h = guest_mix(h, (uintptr_t)p[k]);
  }
  malloc_trim(0);
  printf("addresses %016llx\nbreak %p\n", (unsigned long long)h, sbrk(0));
  guest_ok("mem_brk_malloc");
}
