// build:
// deterministic
// loses
// Proves: a hint is no more than that. Where it names memory that belongs to Geryon the kernel chooses another place, also where
// there happens to be a hole: what is mapped can be unmapped again (V8 asks for random places, and one in some thousand was
// there). Whoever asks for such a place and no other, unless it is taken, is told that it is.
#include "guest.h"
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

int main(void) {
  const unsigned long begin = 0x2fe500000000, end = 0x2fe800000000, step = 0x4000000, size = 0x10000;
  int mapped = 0, there = 0;
  for (unsigned long hint = begin; hint < end; hint += step) {
    char *at = mmap((void *)hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    memset(at, 1, size);
    CHECK(munmap(at, size) == 0);
    mapped++;
    at = mmap((void *)hint, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(at != MAP_FAILED || errno == EEXIST);
    if (at != MAP_FAILED) {
      CHECK(munmap(at, size) == 0);
      there++;
    }
  }
  CHECK(there <= mapped);
  printf("%d\n", mapped);
  guest_ok("mmap_hint");
}
