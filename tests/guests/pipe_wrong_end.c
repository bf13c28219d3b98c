// build:
// deterministic
// loses
// Proves: a write to the end of a pipe that is read from says EBADF at once (it waited for room for ever), as
// does a read of the other one. (And codes of arch_prctl that only look are answered.)
#include "guest.h"
#include <sys/syscall.h>
int main(void) {
  int p[2];
  char c[8000] = {0};
  CHECK(pipe(p) == 0);
  CHECK(write(p[0], c, 1) == -1 && errno == EBADF);
  CHECK(write(p[0], c, sizeof c) == -1 && errno == EBADF);
  CHECK(read(p[1], c, 1) == -1 && errno == EBADF);
  unsigned long word = 0;
  CHECK(syscall(SYS_arch_prctl, 0x1003, &word) == 0 && word != 0);
  printf("ARCH_GET_CPUID: %ld\n", syscall(SYS_arch_prctl, 0x1011, 0));
  guest_ok("pipe_wrong_end");
}
