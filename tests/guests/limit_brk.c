// build:
// deterministic
// loses
// Proves: memory that the program's own limit denies is denied in every replica: brk says where the break is,
// mmap and mremap say ENOMEM. (The limit is the leader's only: a follower had the memory, and its program
// another break.)
#include "guest.h"
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
int main(void) {
  char *start = (char *)syscall(SYS_brk, 0);
  CHECK((char *)syscall(SYS_brk, start + 8192) == start + 8192);
  struct rlimit none = {4096, RLIM_INFINITY}, old;
  CHECK(getrlimit(RLIMIT_DATA, &old) == 0);
  CHECK(setrlimit(RLIMIT_DATA, &none) == 0);
  for (int i = 1; i < 5; i++) {
    char *now = (char *)syscall(SYS_brk, start + 8192 + i * 65536);
    printf("brk moved by %ld\n", (long)(now - start));
  }
  void *m = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(m == MAP_FAILED && errno == ENOMEM);
  printf("mmap failed\n");
  printf("back: %ld\n", (long)((char *)syscall(SYS_brk, start + 4096) - start));
  CHECK(setrlimit(RLIMIT_DATA, &old) == 0);
  CHECK((char *)syscall(SYS_brk, start + 65536) == start + 65536);
  memset(start, 1, 65536);
  printf("brk moved\n");
  guest_ok("limit_brk");
}
