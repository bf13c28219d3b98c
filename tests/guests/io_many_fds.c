// build:
// deterministic
// loses
// Proves: several hundred descriptors, their numbers, dup, dup2, dup3, fcntl.
#include "guest.h"
#include <fcntl.h>
#define FDS 400
int main(void) {
  int fd[FDS];
  uint64_t h = 0;
  for (int i = 0; i < FDS; i++) {
    fd[i] = open(i & 1 ? "/dev/null" : "/etc/passwd", O_RDONLY | O_CLOEXEC);
    CHECK(fd[i] >= 0);
    h = guest_mix(h, fd[i] - fd[0]);
  }
  for (int i = 0; i < FDS; i += 3)
    CHECK(close(fd[i]) == 0);
  int low = open("/dev/null", O_WRONLY);
  CHECK(low == fd[0]);
  CHECK(dup2(1, 700) == 700 && dup3(700, 701, O_CLOEXEC) == 701);
  CHECK(fcntl(701, F_GETFD) == FD_CLOEXEC && fcntl(700, F_GETFD) == 0);
  CHECK(dup(700) == fd[3]);
  CHECK(fcntl(1, F_DUPFD_CLOEXEC, 650) == 650);
  CHECK(write(650, "by number 650\n", 14) == 14);
  CHECK(close_range(600, 800, 0) == 0);
  CHECK(write(700, "x", 1) == -1 && errno == EBADF);
  printf("numbers %016llx\n", (unsigned long long)h);
  guest_ok("io_many_fds");
}
