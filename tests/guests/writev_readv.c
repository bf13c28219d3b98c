// build:
// deterministic
// loses
// Proves: vectors of buffers, also empty ones, and the positioned forms.
#include "guest.h"
#include <fcntl.h>
#include <sys/uio.h>
int main(void) {
  const char *path = guest_tmp("writev");
  int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
  CHECK(fd >= 0);
  struct iovec out[4] = {{"abc", 3}, {NULL, 0}, {"defgh", 5}, {"i\n", 2}};
  CHECK(writev(fd, out, 4) == 10);
  CHECK(pwritev(fd, out, 1, 20) == 3);
  CHECK(pwrite(fd, "XY", 2, 1) == 2);
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  char a[4], b[1], c[100];
  struct iovec in[3] = {{a, 4}, {b, 1}, {c, 100}};
  CHECK(readv(fd, in, 3) == 23);
  CHECK(!memcmp(a, "aXYd", 4) && b[0] == 'e' && !memcmp(c, "fghi\n", 5));
  CHECK(preadv(fd, in, 2, 20) == 3 && !memcmp(a, "abc", 3));
  CHECK(pread(fd, c, 2, 1) == 2 && !memcmp(c, "XY", 2));
  struct iovec std[2] = {{"to ", 3}, {"stdout\n", 7}};
  CHECK(writev(1, std, 2) == 10);
  volatile int less = -1;
  CHECK(writev(fd, out, less) == -1 && errno == EINVAL);
  CHECK(!close(fd) && !unlink(path));
  guest_ok("writev_readv");
}
