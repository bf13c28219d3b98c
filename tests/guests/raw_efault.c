// build:
// deterministic
// loses
// Proves: bad pointers give EFAULT, as the kernel says, not a crash of the one
// who marshals: unmapped, read-only, half a page short.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
int main(void) {
  char *bad = (char *)8;
  int p[2];
  CHECK(pipe(p) == 0);
  char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
  CHECK(syscall(SYS_write, 1, bad, 10) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_write, p[1], page, 4096) == 4096);
  CHECK(syscall(SYS_read, p[0], bad, 10) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_open, bad, O_RDONLY) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_stat, "/", bad) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, bad) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_writev, 1, bad, 2) == -1 && errno == EFAULT);
  struct iovec v[2] = {{"", 0}, {bad, 4}};
  CHECK(syscall(SYS_writev, 1, v, 2) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_nanosleep, bad, NULL) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_poll, bad, 1, 0) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_pipe, bad) == -1 && errno == EFAULT);
  memset(page, '/', 4096);
  CHECK(syscall(SYS_open, page + 4000, O_RDONLY) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_uname, page + 4000) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_getcwd, bad, 100) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_rt_sigaction, 10, bad, NULL, 8) == -1 && errno == EFAULT);
  guest_ok("raw_efault");
}
