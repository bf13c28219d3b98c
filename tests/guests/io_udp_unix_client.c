// build:
// deterministic
// loses
// Proves: UDP with addresses in and out, an abstract unix socket, ECONNREFUSED.
#include "guest.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET}, from;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t len = sizeof a;
  int r = socket(AF_INET, SOCK_DGRAM, 0), s = socket(AF_INET, SOCK_DGRAM, 0);
  CHECK(r >= 0 && s >= 0 && !bind(r, (struct sockaddr *)&a, len));
  CHECK(!getsockname(r, (struct sockaddr *)&a, &len));
  char buf[32];
  CHECK(sendto(s, "datagram", 8, 0, (struct sockaddr *)&a, len) == 8);
  len = sizeof from;
  CHECK(recvfrom(r, buf, 32, 0, (struct sockaddr *)&from, &len) == 8);
  CHECK(from.sin_family == AF_INET && from.sin_port && len == sizeof from);
  CHECK(sendto(r, "back", 4, 0, (struct sockaddr *)&from, len) == 4);
  CHECK(recv(s, buf, 32, 0) == 4 && !memcmp(buf, "back", 4));
  close(r);
  int t = socket(AF_INET, SOCK_STREAM, 0);
  a.sin_port = htons(1);
  CHECK(connect(t, (struct sockaddr *)&a, sizeof a) == -1);
  CHECK(errno == ECONNREFUSED);
  struct sockaddr_un u = {.sun_family = AF_UNIX};
  snprintf(u.sun_path + 1, 80, "geryon-guest-%d", getpid());
  int l = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(!bind(l, (struct sockaddr *)&u, sizeof u) && !listen(l, 1));
  CHECK(!connect(c, (struct sockaddr *)&u, sizeof u));
  int x = accept(l, NULL, NULL);
  CHECK(x >= 0 && write(c, "u", 1) == 1 && read(x, buf, 1) == 1);
  guest_ok("io_udp_unix_client");
}
