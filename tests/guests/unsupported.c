// build:
// refused: io_uring_setup
// deterministic
// native: skip
// Proves: calls Geryon refuses fail with an errno from which programs fall
// back: io_uring_setup and an unknown number give ENOSYS, ptrace gives EPERM
// or ENOSYS. (Natively io_uring and ptrace may succeed.)
#include "guest.h"
#include <sys/syscall.h>
int main(void) {
  char params[120] = {0};
  CHECK(syscall(SYS_io_uring_setup, 8, params) == -1 && errno == ENOSYS);
  CHECK(syscall(100000, 1, 2, 3) == -1 && errno == ENOSYS);
  CHECK(syscall(SYS_ptrace, 0, 0, 0, 0) == -1);
  CHECK(errno == EPERM || errno == ENOSYS);
  guest_ok("unsupported");
}
