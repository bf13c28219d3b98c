// build:
// loses
// not in data: what it prints are addresses, or is made of them
// Proves: mapped addresses agree in every replica (they are printed), also
// after mremap, partial unmap, mprotect, madvise.
#include "guest.h"
#include <sys/mman.h>
#define PAGE 4096
int main(void) {
  for (int i = 1; i <= 20; i++) {
    char *p = mmap(NULL, i * 10 * PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED && p[5 * PAGE] == 0);
    memset(p, i, i * 10 * PAGE);
    CHECK(munmap(p + PAGE, PAGE) == 0);
    CHECK(mprotect(p + 2 * PAGE, PAGE, PROT_READ) == 0);
    char *q = mremap(p + 3 * PAGE, 2 * PAGE, 40 * PAGE, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED && q[PAGE] == i);
    CHECK(madvise(q, PAGE, MADV_DONTNEED) == 0 && q[0] == 0);
    printf("%p %p\n", (void *)p, (void *)q);
  }
  char *want = (char *)0x200000000000;
  CHECK(mmap(want, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == want);
  CHECK(mmap(want, PAGE, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
             0) == MAP_FAILED);
  CHECK(errno == EEXIST);
  guest_ok("mmap_anon");
}
