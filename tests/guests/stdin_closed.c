// build:
// deterministic
// loses
// Proves: a program that closes stdin and opens a file gets number 0 for it.
#include "guest.h"
#include <fcntl.h>
int main(void) {
  CHECK(close(0) == 0);
  int fd = open("/dev/null", O_RDONLY);
  CHECK(fd == 0);
  char c;
  CHECK(read(0, &c, 1) == 0);
  CHECK(close(0) == 0);
  CHECK(read(0, &c, 1) == -1 && errno == EBADF);
  guest_ok("stdin_closed");
}
