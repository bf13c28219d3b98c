// build:
// deterministic
// loses
// Proves: code made at run time: a syscall instruction in anonymous memory,
// written then made executable, also rewritten and run again.
#include "guest.h"
#include <sys/mman.h>
int main(void) {
  unsigned char code[] = {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3}; // mov, syscall, ret
  unsigned char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  long (*f)(void) = (long (*)(void))(p + 4096 - sizeof code); // ends with the page
  for (int i = 0; i < 20; i++) {
    code[1] = i & 1 ? 39 : 102;
    CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0);
    memcpy(p + 4096 - sizeof code, code, sizeof code);
    CHECK(mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
    CHECK(f() == (i & 1 ? getpid() : (long)getuid()));
  }
  guest_ok("raw_jit_syscall");
}
