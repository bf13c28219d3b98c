// build:
// deterministic
// loses
// Proves: ioctl FIONREAD, isatty on a pipe, a pseudo-terminal of one's own.
#include "guest.h"
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
int main(void) {
  int p[2], n = -1;
  CHECK(pipe(p) == 0 && write(p[1], "1234567", 7) == 7);
  CHECK(ioctl(p[0], FIONREAD, &n) == 0 && n == 7);
  CHECK(isatty(p[0]) == 0 && errno == ENOTTY);
  int m = posix_openpt(O_RDWR | O_NOCTTY);
  CHECK(m >= 0 && grantpt(m) == 0 && unlockpt(m) == 0);
  int s = open(ptsname(m), O_RDWR | O_NOCTTY);
  CHECK(s >= 0 && isatty(s));
  struct winsize ws = {24, 80, 0, 0}, got;
  CHECK(ioctl(m, TIOCSWINSZ, &ws) == 0 && ioctl(s, TIOCGWINSZ, &got) == 0);
  CHECK(got.ws_row == 24 && got.ws_col == 80);
  struct termios t;
  CHECK(tcgetattr(s, &t) == 0);
  cfmakeraw(&t);
  CHECK(tcsetattr(s, TCSANOW, &t) == 0);
  char b[4];
  CHECK(write(m, "ab", 2) == 2 && read(s, b, 4) == 2 && !memcmp(b, "ab", 2));
  guest_ok("io_tty_ioctl");
}
