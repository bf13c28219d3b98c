// build:
// deterministic
// loses
// Proves: TCP over loopback inside one process: a serving and a calling thread.
#include "guest.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#define ROUNDS 200
static int listener;
static void *serve(void *arg) {
  (void)arg;
  struct sockaddr_in peer;
  socklen_t len = sizeof peer;
  int fd = accept4(listener, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC);
  CHECK(fd >= 0 && peer.sin_family == AF_INET && len == sizeof peer);
  char buf[1024];
  ssize_t n;
  while ((n = recv(fd, buf, sizeof buf, 0)) > 0)
    for (ssize_t done = 0; done < n;) {
      ssize_t w = send(fd, buf + done, n - done, MSG_NOSIGNAL);
      CHECK(w > 0);
      done += w;
    }
  CHECK(n == 0);
  close(fd);
  return NULL;
}
int main(void) {
  struct sockaddr_in a = {.sin_family = AF_INET};
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int one = 1;
  CHECK(listener >= 0);
  CHECK(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
  CHECK(!bind(listener, (struct sockaddr *)&a, sizeof a) && !listen(listener, 4));
  socklen_t len = sizeof a;
  CHECK(!getsockname(listener, (struct sockaddr *)&a, &len) && a.sin_port);
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, serve, NULL));
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&a, sizeof a));
  CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
  uint64_t sum = 0;
  for (int i = 0; i < ROUNDS; i++) {
    char out[500], in[500];
    int n = 1 + i * 2;
    memset(out, 'a' + i % 26, sizeof out);
    CHECK(write(fd, out, n) == n);
    for (int got = 0; got < n;) {
      ssize_t r = read(fd, in + got, n - got);
      CHECK(r > 0);
      got += r;
    }
    CHECK(!memcmp(in, out, n));
    sum = guest_hash(sum + 1, in, n);
  }
  CHECK(!shutdown(fd, SHUT_WR) && !pthread_join(t, NULL));
  printf("echoed %016llx\n", (unsigned long long)sum);
  guest_ok("io_tcp_echo");
}
