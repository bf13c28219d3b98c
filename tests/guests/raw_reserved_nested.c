// build:
// deterministic
// Proves: where Geryon lies nothing is for the program, as natively, also where the address stands in what a call is
// given: buffers of an iovec, name, buffers and control data of a message, strings of an exec, the mask of a pselect,
// the buffer of an ifconf, a filter's instructions. (What lay there went out, each replica's own, so that they differed;
// or a read wrote over it.)
#include "guest.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

static const unsigned long places[] = {0x2fe500000000, 0x2fe500001008, 0x2fe510000000, 0x2fe520000000,
                                       0x2fe52000e010, 0x2fe580000000, 0x2fe580011000};
static char got[64], more[64];

static void says(const char *what, long r) {
  int e = errno;
  printf("  %s: %ld %d", what, r, r < 0 ? e : 0);
  printf(" \"%.20s\" \"%.20s\"\n", got, more);
  fflush(stdout);
  memset(got, 0, sizeof got);
  memset(more, 0, sizeof more);
}

// Which of the buffers is Geryon's.
static void vectors(char *p, int f, int pipe[2], int bad) {
  struct iovec v[3] = {{"first ", 6}, {"second ", 7}, {"third", 5}};
  v[bad].iov_base = p;
  CHECK(lseek(f, 0, SEEK_SET) == 0 && ftruncate(f, 0) == 0);
  says("writev", writev(f, v, 3));
  says("pwritev", pwritev(f, v, 3, 40));
  CHECK(pread(f, got, 60, 0) >= 0);
  says("file", 0);
  says("writev to a pipe", writev(pipe[1], v, 3));
  struct pollfd ready = {pipe[0], POLLIN, 0};
  says("pipe", poll(&ready, 1, 0) > 0 ? read(pipe[0], got, 60) : 0);
  v[2].iov_len = 0; // (nothing is nowhere, too)
  says("writev", writev(f, v, 3));
  struct iovec in[3] = {{got, 4}, {more, 4}, {more + 8, 4}};
  in[bad].iov_base = p;
  CHECK(pwrite(f, "0123456789ab", 12, 0) == 12 && lseek(f, 0, SEEK_SET) == 0);
  says("readv", readv(f, in, 3));
  says("preadv", preadv(f, in, 3, 2));
  says("offset", lseek(f, 0, SEEK_CUR));
}

// Which part of the message is.
static void messages(char *p, int s[2], int bad) {
  char control[64] = {0}, name[16] = {0};
  struct iovec v[2] = {{"abcd", 4}, {"efgh", 4}};
  struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
  switch (bad) {
  case 0:
    m.msg_iov = (struct iovec *)p;
    break;
  case 1:
    v[1].iov_base = p;
    break;
  case 2:
    m.msg_name = p, m.msg_namelen = 16;
    break;
  default:
    m.msg_control = p, m.msg_controllen = 32;
  }
  says("sendmsg", sendmsg(s[0], &m, MSG_DONTWAIT));
  struct mmsghdr mm[3];
  struct iovec good = {"good", 4};
  memset(mm, 0, sizeof mm);
  for (int i = 0; i < 3; i++)
    mm[i].msg_hdr = (struct msghdr){.msg_iov = &good, .msg_iovlen = 1};
  mm[1].msg_hdr = m;
  says("sendmmsg", syscall(SYS_sendmmsg, s[0], mm, 3, MSG_DONTWAIT));
  printf("  %u %u %u\n", mm[0].msg_len, mm[1].msg_len, mm[2].msg_len);
  ssize_t n;
  while ((n = recv(s[1], got, sizeof got, MSG_DONTWAIT)) > 0)
    says("came", n);
  // The other way.
  CHECK(send(s[0], "12345678", 8, 0) == 8 && send(s[0], "hello", 5, 0) == 5 && send(s[0], "again", 5, 0) == 5);
  struct iovec in[2] = {{got, 4}, {more, 20}};
  m = (struct msghdr){.msg_name = name, .msg_namelen = 16, .msg_iov = in, .msg_iovlen = 2, .msg_control = control, .msg_controllen = 64, .msg_flags = 77};
  switch (bad) {
  case 0:
    m.msg_iov = (struct iovec *)p;
    break;
  case 1:
    in[1].iov_base = p;
    break;
  case 2:
    m.msg_name = p;
    break;
  default:
    m.msg_control = p;
  }
  says("recvmsg", recvmsg(s[1], &m, MSG_DONTWAIT));
  printf("  %u %zu %d %d\n", m.msg_namelen, m.msg_controllen, m.msg_flags, m.msg_name == p);
  struct iovec in2 = {more + 32, 20};
  mm[0].msg_hdr = (struct msghdr){.msg_iov = &in2, .msg_iovlen = 1, .msg_name = name, .msg_namelen = 16};
  mm[1].msg_hdr = m;
  says("recvmmsg", syscall(SYS_recvmmsg, s[1], mm, 2, MSG_DONTWAIT, NULL));
  printf("  %u %u %u %d\n", mm[0].msg_len, mm[0].msg_hdr.msg_namelen, mm[1].msg_len, mm[1].msg_hdr.msg_iov == m.msg_iov);
  while ((n = recv(s[1], got, sizeof got, MSG_DONTWAIT)) > 0)
    says("left", n);
}

static volatile int again, hits, other_end;
static void on(int s) {
  (void)s;
  if (again && ++hits == 2)
    CHECK(send(other_end, "12345", 5, 0) == 5);
}

int main(void) {
  const char *file = guest_tmp("raw_reserved_nested");
  struct sigaction sa = {.sa_handler = on};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
    char *p = (char *)places[i];
    int f = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600), fds[2], s[2];
    CHECK(f >= 0 && pipe(fds) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
    printf("place %u\n", i);
    for (int bad = 0; bad < 3; bad++)
      vectors(p, f, fds, bad);
    for (int bad = 0; bad < 4; bad++)
      messages(p, s, bad);
    char *argv[] = {"true", p, NULL}, *none[] = {NULL};
    says("execve", syscall(SYS_execve, "/bin/true", argv, none));
    argv[1] = NULL;
    char *env[] = {"A=b", p, NULL};
    says("execve", syscall(SYS_execve, "/bin/true", argv, env));
    struct timespec t = {0, 0};
    struct { void *mask; size_t size; } pair = {p, 8};
    says("pselect6", syscall(SYS_pselect6, 0, NULL, NULL, NULL, &t, &pair));
    struct ifconf c = {.ifc_len = 400, .ifc_buf = p};
    says("SIOCGIFCONF", ioctl(s[0], SIOCGIFCONF, &c));
    printf("  %d\n", c.ifc_len == 400 || c.ifc_len == 0);
    struct sock_fprog filter;
    memset(&filter, 0, sizeof filter); // (its padding is compared)
    filter.len = 4, filter.filter = (struct sock_filter *)p;
    says("SO_ATTACH_FILTER", setsockopt(s[0], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter));
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    says("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
    says("prctl", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
    // A handler interrupts the call, which is made again or not: the program has its registers.
    for (again = 0, hits = 0, other_end = s[0]; again < 2; again++) {
      sa.sa_flags = again ? SA_RESTART : 0;
      CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
      struct itimerval it = {{0, 20000}, {0, 20000}};
      struct iovec v[2] = {{got, 4}, {p, 4}};
      struct msghdr m = {.msg_iov = v, .msg_iovlen = 2, .msg_control = p, .msg_controllen = 8};
      CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
      register long r __asm__("rax") = SYS_recvmsg;
      register long a __asm__("rdi") = s[1];
      register void *b __asm__("rsi") = &m;
      register long d __asm__("rdx") = 0;
      __asm__ volatile("syscall" : "+a"(r), "+D"(a), "+S"(b), "+d"(d) : : "rcx", "r11", "memory");
      CHECK(a == s[1] && b == &m && d == 0 && v[1].iov_base == p && m.msg_control == p);
      printf("  interrupted: %ld\n", r);
      struct itimerval off = {{0, 0}, {0, 0}};
      CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
    }
    CHECK(!close(f) && !close(fds[0]) && !close(fds[1]) && !close(s[0]) && !close(s[1]));
  }
  CHECK(unlink(file) == 0);
  guest_ok("raw_reserved_nested");
}
