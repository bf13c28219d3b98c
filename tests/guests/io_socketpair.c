// build:
// deterministic
// loses
// Proves: local sockets: stream, datagram, sendmsg with iovec, a descriptor
// passed to oneself with SCM_RIGHTS.
#include "guest.h"
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
int main(void) {
  int s[2], d[2];
  char buf[64];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, d) == 0);
  CHECK(send(s[0], "stream", 6, 0) == 6);
  CHECK(recv(s[1], buf, 3, 0) == 3 && recv(s[1], buf + 3, 9, 0) == 3);
  CHECK(!memcmp(buf, "stream", 6));
  CHECK(send(d[0], "one", 3, 0) == 3 && send(d[0], "three", 5, 0) == 5);
  CHECK(recv(d[1], buf, 64, MSG_PEEK) == 3 && recv(d[1], buf, 64, 0) == 3);
  CHECK(recv(d[1], buf, 2, MSG_TRUNC) == 5);
  CHECK(recv(d[1], buf, 64, MSG_DONTWAIT) == -1 && errno == EAGAIN);
  int p[2], one = 1;
  socklen_t len = sizeof one;
  CHECK(getsockopt(s[0], SOL_SOCKET, SO_TYPE, &one, &len) == 0);
  CHECK(one == SOCK_STREAM && pipe(p) == 0);
  struct iovec iov[2] = {{"he", 2}, {"llo", 3}};
  union {
    char b[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } c;
  memset(&c, 0, sizeof c);
  struct msghdr m = {0};
  m.msg_iov = iov;
  m.msg_iovlen = 2;
  m.msg_control = c.b;
  m.msg_controllen = sizeof c.b;
  struct cmsghdr *h = CMSG_FIRSTHDR(&m);
  h->cmsg_level = SOL_SOCKET;
  h->cmsg_type = SCM_RIGHTS;
  h->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(h), &p[1], sizeof(int));
  CHECK(sendmsg(s[0], &m, 0) == 5);
  struct iovec in = {buf, sizeof buf};
  m.msg_iov = &in;
  m.msg_iovlen = 1;
  memset(&c, 0, sizeof c);
  CHECK(recvmsg(s[1], &m, 0) == 5 && !memcmp(buf, "hello", 5));
  h = CMSG_FIRSTHDR(&m);
  CHECK(h && h->cmsg_type == SCM_RIGHTS);
  int got;
  memcpy(&got, CMSG_DATA(h), sizeof got);
  printf("passed descriptor is %d above the original\n", got - p[1]);
  CHECK(write(got, "via", 3) == 3 && read(p[0], buf, 64) == 3);
  CHECK(shutdown(s[0], SHUT_WR) == 0 && recv(s[1], buf, 64, 0) == 0);
  guest_ok("io_socketpair");
}
