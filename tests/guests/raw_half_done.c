// build:
// deterministic
// loses
// Proves: a call that fails when it has done something has done it once, in every replica: a packet is taken and its
// bytes are written, a size or an id is told, what was mapped is gone. (It was made twice, or only the leader's memory
// had changed, and a right leader was outvoted.)
#include "guest.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

static uint64_t all = 1;
static void say(const char *what, long r, const void *p, size_t n) {
  int e = r < 0 ? errno : 0;
  all = guest_hash(all, p, n);
  printf("%s: %ld, errno %d, %016lx\n", what, r, e, (unsigned long)all);
  fflush(stdout);
}

int main(void) {
  char *page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
  int s[2];
  CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, s) == 0);
  CHECK(write(s[1], "the first one", 13) == 13 && write(s[1], "the second one", 14) == 14);

  // A peer's address of a negative length.
  char name[128];
  int size = -1;
  say("recvfrom", syscall(SYS_recvfrom, s[0], page, 100, 0, name, &size), page, 100);
  say("recvfrom", syscall(SYS_recvfrom, s[0], page, 100, 0, NULL, NULL), page, 100);

  // Two packets, the second one into memory that ends.
  CHECK(write(s[1], "number three", 12) == 12 && write(s[1], "and number four", 15) == 15);
  struct iovec v[2] = {{page, 100}, {page + 4096 - 5, 100}};
  struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = v, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = v + 1, .msg_iovlen = 1}}};
  say("recvmmsg", syscall(SYS_recvmmsg, s[0], m, 2, 0, NULL), page, 4096);
  say("recv", recv(s[0], page, 100, 0), page, 100);

  // A size that the kernel does not know, and the one that it knows.
  uint32_t attr[1024] = {4096};
  attr[500] = 1;
  long r = syscall(SYS_sched_setattr, 0, attr, 0);
  printf("sched_setattr: %ld, another size %d\n", r, attr[0] != 4096);
  CHECK(write(1, "", 0) == 0);

  // A clock that is none.
  struct sigevent e = {.sigev_notify = SIGEV_NONE};
  int id = -7;
  r = syscall(SYS_timer_create, -1, &e, &id);
  printf("timer_create: %ld, errno %d, id %d\n", r, errno, id);
  fflush(stdout);

  // What cannot be mapped takes the place of what was there, or does not: as the kernel does it.
  int p[2];
  CHECK(pipe(p) == 0);
  char *third = page + 2 * 4096;
  strcpy(third, "there");
  r = (long)mmap(third, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, s[0], 0) == -1 ? -1 : 0;
  int error = errno;
  CHECK(write(p[1], third, 5) == 5 || errno == EFAULT);
  printf("mmap: %ld, errno %d, %s\n", r, error, write(p[1], third, 5) == 5 ? "there" : "gone");
  r = (long)mmap(page, -4096ul, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  printf("mmap of all: %ld, errno %d, %s\n", r, errno, write(p[1], page, 5) == 5 ? "there" : "gone");
  guest_ok("raw_half_done");
}
