// build:
// deterministic
// loses
// Proves: a packet that recvmmsg could not put where it belongs, behind others that it has, leaves its error with the
// socket, and the next call is given it, once. (A send that said EFAULT for that reason was made once more, for its
// caller might have been hit, and succeeded.)
#include "guest.h"
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static int pair[2];
static void *nowhere;

// Leave an error with pair[1].
static void leave(int how) {
  char name[128], buffer[2][16];
  struct iovec v[2] = {{buffer[0], 16}, {how == 0 ? nowhere : buffer[1], 16}};
  struct mmsghdr m[2];
  memset(m, 0, sizeof m);
  for (int i = 0; i < 2; i++)
    m[i].msg_hdr.msg_iov = &v[i], m[i].msg_hdr.msg_iovlen = 1;
  if (how == 1)
    m[1].msg_hdr.msg_name = name, m[1].msg_hdr.msg_namelen = -5;
  if (how == 2)
    m[1].msg_hdr.msg_iov = nowhere;
  CHECK(send(pair[0], "one", 3, 0) == 3 && send(pair[0], "two", 3, 0) == 3);
  long r = syscall(SYS_recvmmsg, pair[1], m, 2, MSG_DONTWAIT, NULL);
  printf("%d recvmmsg %ld %u\n", how, r, m[0].msg_len);
}

static void says(const char *what, long r) { printf("  %s %ld %d\n", what, r, r < 0 ? errno : 0); }

int main(void) {
  nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(nowhere != MAP_FAILED);
  for (int udp = 0; udp < 2; udp++)
    for (int how = 0; how < 3; how++)
      for (int what = 0; what < 6; what++) {
        if (!udp) {
          CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
        } else {
          for (int i = 0; i < 2; i++) {
            struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
            CHECK((pair[i] = socket(AF_INET, SOCK_DGRAM, 0)) >= 0 && bind(pair[i], (void *)&a, sizeof a) == 0);
          }
          for (int i = 0; i < 2; i++) {
            struct sockaddr_in a;
            socklen_t n = sizeof a;
            CHECK(getsockname(pair[!i], (void *)&a, &n) == 0 && connect(pair[i], (void *)&a, n) == 0);
          }
        }
        leave(how);
        char buffer[16];
        int error = 0;
        socklen_t n = sizeof error;
        struct iovec v = {"abc", 3};
        struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
        for (int again = 0; again < 2; again++)
          switch (what) {
          case 0:
            says("send", send(pair[1], "abc", 3, MSG_DONTWAIT));
            break;
          case 1:
            says("sendmsg", sendmsg(pair[1], &m, MSG_DONTWAIT));
            break;
          case 2:
            says("write", write(pair[1], "abc", 3));
            break;
          case 3:
            says("recv", recv(pair[1], buffer, 16, MSG_DONTWAIT));
            break;
          case 4:
            says("writev", writev(pair[1], &v, 1));
            break;
          default:
            CHECK(getsockopt(pair[1], SOL_SOCKET, SO_ERROR, &error, &n) == 0);
            printf("  SO_ERROR %d\n", error);
          }
        CHECK(!close(pair[0]) && !close(pair[1]));
      }
  guest_ok("raw_stored_error");
}
