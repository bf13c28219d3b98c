// build:
// deterministic
// loses
// Proves: readiness calls give every replica the same answer, in-out arrays
// included.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
int main(void) {
  int p[2], q[2];
  CHECK(pipe(p) == 0 && pipe2(q, O_NONBLOCK | O_CLOEXEC) == 0);
  struct pollfd f[3] = {{p[0], POLLIN, 0}, {q[1], POLLOUT, 0}, {-1, POLLIN, 7}};
  CHECK(poll(f, 3, 0) == 1 && f[0].revents == 0 && f[1].revents == POLLOUT &&
        f[2].revents == 0);
  CHECK(poll(f, 1, 5) == 0);
  CHECK(write(p[1], "x", 1) == 1);
  CHECK(poll(f, 3, -1) == 2 && f[0].revents == POLLIN);
  fd_set r, w;
  FD_ZERO(&r);
  FD_ZERO(&w);
  FD_SET(p[0], &r);
  FD_SET(q[0], &r);
  FD_SET(p[1], &w);
  struct timeval tv = {1, 0};
  CHECK(select(64, &r, &w, NULL, &tv) == 2);
  CHECK(FD_ISSET(p[0], &r) && !FD_ISSET(q[0], &r) && FD_ISSET(p[1], &w));
  FD_ZERO(&r);
  FD_SET(q[0], &r);
  tv.tv_sec = 0;
  tv.tv_usec = 3000;
  CHECK(select(64, &r, NULL, NULL, &tv) == 0 && !FD_ISSET(q[0], &r));
  struct timespec ts = {0, 1000000};
  sigset_t m;
  sigemptyset(&m);
  FD_SET(p[0], &r);
  CHECK(pselect(64, &r, NULL, NULL, &ts, &m) == 1);
  CHECK(ppoll(f, 1, &ts, &m) == 1);
  char c;
  CHECK(read(q[0], &c, 1) == -1 && errno == EAGAIN);
  CHECK(read(p[0], &c, 1) == 1 && c == 'x');
  close(p[1]);
  CHECK(poll(f, 1, -1) == 1 && f[0].revents == POLLHUP);
  CHECK(read(p[0], &c, 1) == 0);
  guest_ok("poll_select_pipe");
}
