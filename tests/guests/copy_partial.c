// build:
// deterministic
// loses
// Proves: what the kernel has written before it came to memory that it could not write is in every replica,
// counted or not: the second page of a buffer is missing or read-only. (Only what a successful call had
// counted went to the followers; a right leader was outvoted at its next output.) And a call that fails that
// way may have taken something: it is not made twice.
#include "guest.h"
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

static char *page; // three pages, of which the kernel can write the first
static uint64_t all;

static void say(const char *what, long r) {
  int e = r < 0 ? errno : 0;
  uint64_t h = guest_hash(7, page, 4096);
  all = guest_mix(guest_mix(all, h), (uint64_t)r);
  printf("%s: %ld, errno %d, page %016lx\n", what, r, e, (unsigned long)h);
  fflush(stdout);
}

static char *room(unsigned n) {
  memset(page, 0x5a, 4096);
  return page + 4096 - n;
}

static long sys(long nr, long a, long b, long c, long d, long e, long f) {
  return syscall(nr, a, b, c, d, e, f);
}
#define SYS(n, a, b, c, d, e, f) sys(SYS_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static void reads(int second) {
  printf("second page: %d\n", second);
  char big[10000];
  for (unsigned i = 0; i < sizeof big; i++)
    big[i] = (char)(i * 31 + 7);
  char path[4096];
  snprintf(path, sizeof path, "%s", guest_tmp("copy_partial"));
  int f = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(f >= 0 && write(f, big, sizeof big) == sizeof big);
  say("pread", SYS(pread64, f, room(100), 6000, 5, 0, 0));
  say("pread none", SYS(pread64, f, room(0), 6000, 5, 0, 0));
  struct iovec v[3] = {{room(3000), 1000}, {page + 4096 - 50, 500}, {page, 40}};
  say("preadv", SYS(preadv, f, v, 3, 9, 0, 0));
  int p[2], s[2];
  CHECK(pipe(p) == 0);
  CHECK(write(p[1], big, 3000) == 3000 && write(p[1], big, 4000) == 4000);
  say("pipe", SYS(read, p[0], room(200), 4096, 0, 0, 0));
  say("pipe two", SYS(read, p[0], room(3500), 4096, 0, 0, 0));
  say("pipe rest", SYS(read, p[0], room(4096), 4096, 0, 0, 0));
  // What is counted fills the first buffer, and the kernel has come into the second one.
  CHECK(write(p[1], big, 200) == 200 && write(p[1], big, 4000) == 4000);
  struct iovec two[2] = {{room(4096), 200}, {page + 4096 - 300, 4000}};
  say("pipe in pieces", SYS(readv, p[0], two, 2, 0, 0, 0));
  say("pipe's rest", SYS(read, p[0], room(4096), 4096, 0, 0, 0));
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
  CHECK(write(s[1], big, 700) == 700 && write(s[1], big, 900) == 900);
  say("stream", SYS(recvfrom, s[0], room(300), 2000, 0, 0, 0));
  say("stream two", SYS(read, s[0], room(1000), 2000, 0, 0, 0));
  say("stream rest", SYS(recvfrom, s[0], room(4096), 4096, MSG_DONTWAIT, 0, 0));
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
  for (int i = 0; i < 4; i++)
    CHECK(write(s[1], big + i, 700) == 700);
  say("packet", SYS(recvfrom, s[0], room(300), 2000, 0, 0, 0));
  say("packet's name", SYS(recvfrom, s[0], room(900), 900, 0, 8, 8));
  struct iovec w = {room(600), 2000};
  struct msghdr m = {.msg_iov = &w, .msg_iovlen = 1};
  say("message", SYS(recvmsg, s[0], &m, 0, 0, 0, 0));
  say("packet rest", SYS(recvfrom, s[0], room(4096), 4096, MSG_DONTWAIT, 0, 0));
  say("packet none", SYS(recvfrom, s[0], room(4096), 4096, MSG_DONTWAIT, 0, 0));

  int e = eventfd(3, EFD_NONBLOCK);
  say("eventfd", SYS(read, e, room(4), 8, 0, 0, 0));
  say("eventfd again", SYS(read, e, room(8), 8, 0, 0, 0));
  say("uname", SYS(uname, room(70), 0, 0, 0, 0, 0));
  say("getcwd", SYS(getcwd, room(1), 1000, 0, 0, 0, 0));
  CHECK(symlink("abcdefghij", guest_tmp("copy_link")) == 0);
  say("readlink", SYS(readlink, guest_tmp("copy_link"), room(5), 100, 0, 0, 0));
  CHECK(unlink(guest_tmp("copy_link")) == 0 && unlink(path) == 0);
  say("pipe", SYS(pipe, room(4), 0, 0, 0, 0, 0));
  say("socketpair", SYS(socketpair, AF_UNIX, SOCK_STREAM, 0, room(4), 0, 0));
  say("getrlimit", SYS(getrlimit, RLIMIT_NOFILE, room(8), 0, 0, 0, 0));
  say("prlimit64", SYS(prlimit64, 0, RLIMIT_NOFILE, 0, room(8), 0, 0));
  int dir = open("/proc/self/fdinfo/..", O_RDONLY | O_DIRECTORY);
  CHECK(dir >= 0);
  close(dir);
  CHECK(mkdir(guest_tmp("copy_dir"), 0700) == 0);
  dir = open(guest_tmp("copy_dir"), O_RDONLY | O_DIRECTORY);
  long n = SYS(getdents64, dir, room(40), 4000, 0, 0, 0);
  printf("getdents64: %d\n", (int)(n > 0 ? n : -errno)); // (inode numbers differ)
  n = SYS(getdents64, dir, room(10), 4000, 0, 0, 0);
  printf("getdents64 none: %d\n", (int)(n > 0 ? n : -errno));
  // (What is there has to be alike in all replicas: it is written.)
  int null = open("/dev/null", O_WRONLY);
  CHECK(write(null, page, 4096) == 4096);
  close(null), close(dir);
  CHECK(rmdir(guest_tmp("copy_dir")) == 0);

  int q = msgget(IPC_PRIVATE, 0600);
  CHECK(q >= 0);
  struct {
    long type;
    char text[300];
  } msg;
  for (int i = 1; i < 4; i++) {
    msg.type = i;
    memset(msg.text, 'a' + i, sizeof msg.text);
    CHECK(msgsnd(q, &msg, 300, 0) == 0);
  }
  say("msgrcv", SYS(msgrcv, q, room(100), 300, 0, IPC_NOWAIT, 0));
  say("msgrcv two", SYS(msgrcv, q, room(308), 300, 0, IPC_NOWAIT, 0));
  say("msgrcv short", SYS(msgrcv, q, room(308), 30, 0, IPC_NOWAIT | MSG_NOERROR, 0));
  say("msgrcv none", SYS(msgrcv, q, room(308), 300, 0, IPC_NOWAIT, 0));
  say("msgsnd bad", SYS(msgsnd, q, room(100), 300, IPC_NOWAIT, 0, 0));
  CHECK(msgctl(q, IPC_RMID, NULL) == 0);

  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
  CHECK(raise(SIGUSR1) == 0);
  struct timespec zero = {0, 0};
  say("sigtimedwait", SYS(rt_sigtimedwait, &set, 8, 0, 8, 0, 0));
  say("sigtimedwait again", SYS(rt_sigtimedwait, &set, 0, &zero, 8, 0, 0));
  pid_t child = fork();
  if (child == 0)
    _exit(3);
  int status = 0;
  say("wait4", SYS(wait4, -1, 8, 0, 0, 0, 0));
  say("wait4 again", SYS(wait4, -1, &status, 0, 0, 0, 0));
  say("getsockopt", SYS(getsockopt, s[0], SOL_SOCKET, SO_TYPE, room(2), &(int){4}, 0));
  say("getsockname", SYS(getsockname, s[0], room(1), &(int){100}, 0, 0, 0));
  say("gettimeofday", SYS(gettimeofday, 0, room(4), 0, 0, 0, 0));
  say("sched_getaffinity", SYS(sched_getaffinity, 0, 128, room(0), 0, 0, 0));
  say("write", SYS(write, p[1], room(100), 4096, 0, 0, 0));
  CHECK(ioctl(p[0], FIONREAD, &status) == 0);
  printf("in the pipe: %d\n", status);
  close(p[0]), close(p[1]), close(s[0]), close(s[1]), close(e), close(f);
}

int main(void) {
  page = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  memset(page + 4096, 0x77, 8192);
  CHECK(mprotect(page + 4096, 4096, PROT_READ) == 0);
  reads(1);
  CHECK(mprotect(page + 4096, 4096, PROT_NONE) == 0);
  reads(0);
  CHECK(munmap(page + 4096, 4096) == 0);
  reads(-1);
  printf("%016lx\n", (unsigned long)all);
  guest_ok("copy_partial");
}
