// build:
// args: 1 300
// args: 2 300
// args: 3 300
// args: 4 300
// args: 5 300
// args: 6 300
// args: 7 300
// args: 8 300
// args: 9 300
// args: 10 300
// deterministic
// Proves: whatever one thread asks of the kernel, with good, odd and bad arguments, it gets what it gets
// natively: a seed makes a program of so many calls on files, pipes, sockets and memory, with buffers that end
// at a page that is missing, shut or read-only, with lengths from 0 to 2^64-1. Result, errno and the memory
// that was named are printed. (What differs from run to run, inode numbers, say, is written to /dev/null, where
// replicas are compared, and wiped out.) GUEST_TRACE=1 in the environment prints arguments to stderr.
#include "guest.h"
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>

enum { PAGE = 4096, PAGES = 20, FDS = 40 };
static uint64_t seed;
static char *arena;   // PAGES pages, of different kinds
static char *scratch; // structures that name others: always there
static int null, queue, trace;
static FILE *out;

#define PICK(type, ...) (((type[]){__VA_ARGS__})[below(sizeof((type[]){__VA_ARGS__}) / sizeof(type))])

static uint64_t below(uint64_t n) { return guest_rand(&seed) % n; }
static int one_in(unsigned n) { return below(n) == 0; }

// rw rw ro | rw rw none | rw rw hole | rw ... rw
static int protection(int page) {
  switch (page) {
  case 2:
    return PROT_READ;
  case 5:
    return PROT_NONE;
  case 8:
    return -1;
  default:
    return PROT_READ | PROT_WRITE;
  }
}

static void fill(void) {
  uint64_t s = 12345;
  for (int i = 0; i < PAGES; i++)
    if (protection(i) == (PROT_READ | PROT_WRITE))
      for (int k = 0; k < PAGE; k++) {
        char c = (char)(guest_rand(&s) >> 20);
        arena[i * PAGE + k] = c == '/' ? 0 : c; // (a path from here leads nowhere else)
      }
}

static uint64_t digest(void) {
  uint64_t h = 1;
  for (int i = 0; i < PAGES; i++)
    if (protection(i) >= PROT_READ)
      h = guest_hash(h, arena + i * PAGE, PAGE);
  return guest_hash(h, scratch, PAGE);
}

static int fd(void) {
  if (one_in(20))
    return PICK(int, -1, -100, 1000, INT_MAX);
  return 3 + (int)below(FDS);
}

// Somewhere in memory: in the middle, close before a page's end, or nowhere.
static void *at(void) {
  switch (below(12)) {
  case 0:
    return (void *)PICK(uintptr_t, 0, 8, 0xffff800000000000, 0x8000000000000000, 0x7ffffffff000, -1ul);
  case 1:
  case 2:
  case 3:
  case 4:
    return arena + (2 + 3 * below(3)) * PAGE - below(70); // what comes next cannot be written
  case 5:
    return arena + (2 + 3 * below(3)) * PAGE - below(5000);
  case 6:
    return arena + (2 + 3 * below(3)) * PAGE + below(PAGE);
  default:
    return arena + 9 * PAGE + below(6 * PAGE);
  }
}

static void *good(void) { return arena + 9 * PAGE + below(6 * PAGE); }

static uint64_t len(void) {
  switch (below(12)) {
  case 0:
    return 0;
  case 1:
    return PICK(uint64_t, 0x7fffffff, 0x80000000, 0xffffffff, LONG_MAX, 1ul << 63, -1ul, -4096ul);
  case 2:
    return PAGE - 2 + below(5);
  case 3:
    return below(20000);
  default:
    return 1 + below(300);
  }
}
static uint64_t small(void) { return one_in(4) ? len() : 1 + below(200); }
static uint64_t offset(void) { return one_in(12) ? PICK(uint64_t, -1ul, LONG_MAX, 1ul << 40) : below(9000); }

static const char *path(void) {
  static const char *names[] = {"a", "b", "c", "d", "dir", "dir/a", "dir/b", "link", "none/x", "a/x", "", ".", ".."};
  if (one_in(10))
    return at();
  return names[below(sizeof names / sizeof *names)];
}

static long call(const char *name, int wipes, long nr, long a, long b, long c, long d, long e, long f) {
  if (trace)
    dprintf(202, "%s(%lx, %lx, %lx, %lx, %lx, %lx)\n", name, a, b, c, d, e, f);
  long r = syscall(nr, a, b, c, d, e, f);
  int error = r == -1 ? errno : 0;
  if (wipes) {
    for (int i = 0; i < PAGES; i++)
      if (protection(i) == (PROT_READ | PROT_WRITE))
        CHECK(write(null, arena + i * PAGE, PAGE) == PAGE);
    CHECK(write(null, scratch, PAGE) == PAGE);
    fill();
    memset(scratch, 0, PAGE);
  }
  fprintf(out, "%s %ld %d %016lx\n", name, r, error, (unsigned long)digest());
  return r;
}
#define CALL(w, n, a, b, c, d, e, f) call(#n, w, SYS_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static struct iovec *vector(int *count) {
  struct iovec *v = (struct iovec *)scratch;
  *count = 1 + below(4);
  for (int i = 0; i < *count; i++)
    v[i] = (struct iovec){at(), one_in(8) ? len() : below(400)};
  if (one_in(12))
    *count = PICK(int, 0, -1, 1024, 1025, INT_MAX);
  memset(v + 4, 0, PAGE - 4 * sizeof *v);
  return one_in(15) ? at() : v;
}

static struct msghdr *message(void) {
  int count;
  vector(&count);
  struct msghdr *m = (struct msghdr *)(scratch + 512);
  *m = (struct msghdr){.msg_iov = (struct iovec *)scratch, .msg_iovlen = count < 0 || count > 4 ? 1 : count};
  if (one_in(4))
    m->msg_name = at(), m->msg_namelen = below(120);
  if (one_in(4))
    m->msg_control = good(), m->msg_controllen = 0;
  return one_in(12) ? at() : m;
}

static struct timespec *moment(void) {
  struct timespec *t = one_in(3) ? at() : good();
  char *c = (char *)t;
  // Where it can be written a short time is put there.
  for (int p = 0; p < PAGES; p++)
    if (protection(p) == (PROT_READ | PROT_WRITE) && c >= arena + p * PAGE && c <= arena + (p + 1) * PAGE - 16) {
      int64_t v[2] = {one_in(8) ? -1 : 0, one_in(8) ? 2000000000 : (int64_t)below(20000)};
      memcpy(c, v, 16);
      return t;
    }
  // What lies elsewhere may be a long time: only where nothing is.
  return one_in(2) ? (void *)8 : (void *)(arena + 5 * PAGE);
}

static void step(void) {
  int n;
  struct iovec *v;
  struct msghdr *m;
  switch (below(78)) {
  case 0: case 1: case 2: CALL(0, read, fd(), at(), len(), 0, 0, 0); break;
  case 3: case 4: case 5: CALL(0, write, fd(), at(), len() % 100000, 0, 0, 0); break;
  case 6: CALL(0, write, fd(), one_in(2) ? (void *)8 : at(), PICK(uint64_t, LONG_MAX, 1ul << 63, -1ul), 0, 0, 0); break;
  case 7: case 8: CALL(0, pread64, fd(), at(), len(), offset(), 0, 0); break;
  case 9: CALL(0, pwrite64, fd(), at(), len() % 50000, offset() % 100000, 0, 0); break;
  case 10: case 11: v = vector(&n); CALL(0, readv, fd(), v, n, 0, 0, 0); break;
  case 12: v = vector(&n); CALL(0, writev, fd(), v, n, 0, 0, 0); break;
  case 13: v = vector(&n); CALL(0, preadv, fd(), v, n, offset(), 0, 0); break;
  case 14: v = vector(&n); CALL(0, pwritev, fd(), v, n, below(9000), 0, 0); break;
  case 15: CALL(0, lseek, fd(), offset(), below(6), 0, 0, 0); break;
  case 16: case 17: case 18: case 19: {
    int flags = O_NONBLOCK | PICK(int, O_RDONLY, O_WRONLY, O_RDWR, O_RDWR);
    flags |= one_in(2) ? O_CREAT : 0;
    flags |= one_in(5) ? O_TRUNC : 0;
    flags |= one_in(6) ? O_APPEND : 0;
    flags |= one_in(10) ? O_DIRECTORY : 0;
    flags |= one_in(10) ? O_EXCL : 0;
    CALL(0, openat, AT_FDCWD, path(), flags, 0700, 0, 0);
    break;
  }
  case 20: n = fd(); CALL(0, close, n == null ? -1 : n, 0, 0, 0, 0, 0); break;
  case 21: CALL(0, dup, fd(), 0, 0, 0, 0, 0); break;
  case 22: CALL(0, dup2, fd(), 3 + below(FDS - 1), 0, 0, 0, 0); break;
  case 23: case 24: CALL(0, pipe2, one_in(4) ? at() : good(), O_NONBLOCK, 0, 0, 0, 0); break;
  case 25: case 26: case 27:
    CALL(0, socketpair, one_in(12) ? 99 : AF_UNIX,
         SOCK_NONBLOCK | PICK(int, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET), 0, one_in(4) ? at() : good(), 0, 0);
    break;
  case 28: case 29:
    CALL(0, sendto, fd(), at(), len() % 20000, MSG_DONTWAIT | MSG_NOSIGNAL, one_in(5) ? at() : 0, one_in(5) ? below(140) : 0);
    break;
  case 30: case 31: case 32:
    *(int *)scratch = (int)below(200);
    CALL(0, recvfrom, fd(), at(), len(), MSG_DONTWAIT | (one_in(4) ? MSG_PEEK : 0) | (one_in(4) ? MSG_TRUNC : 0),
         one_in(3) ? at() : 0, one_in(3) ? at() : scratch);
    break;
  case 33: m = message(); CALL(0, sendmsg, fd(), m, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0, 0); break;
  case 34: case 35: m = message(); CALL(0, recvmsg, fd(), m, MSG_DONTWAIT, 0, 0, 0); break;
  case 36: *(int *)scratch = (int)below(200) - 2; CALL(0, getsockname, fd(), at(), one_in(5) ? at() : scratch, 0, 0, 0); break;
  case 37: *(int *)scratch = (int)below(200) - 2; CALL(0, getpeername, fd(), at(), one_in(5) ? at() : scratch, 0, 0, 0); break;
  case 38:
    *(int *)scratch = (int)below(20) - 2;
    CALL(0, getsockopt, fd(), SOL_SOCKET, PICK(int, SO_TYPE, SO_ERROR, SO_DOMAIN, SO_ACCEPTCONN), at(),
         one_in(5) ? at() : scratch, 0);
    break;
  case 39: CALL(0, setsockopt, fd(), SOL_SOCKET, SO_PRIORITY, at(), one_in(4) ? len() : 4, 0); break;
  case 40: if (one_in(4)) CALL(0, shutdown, fd(), below(4), 0, 0, 0, 0); break;
  case 41: CALL(1, fstat, fd(), at(), 0, 0, 0, 0); break;
  case 42: CALL(1, stat, path(), at(), 0, 0, 0, 0); break;
  case 43: {
    struct pollfd *p = (struct pollfd *)(one_in(3) ? at() : good());
    uint64_t many = one_in(5) ? len() : 1 + below(3);
    // (Random descriptors lie there.)
    CALL(0, poll, p, many, 0, 0, 0, 0);
    break;
  }
  case 44: {
    struct timespec *t = moment();
    CALL(1, ppoll, 0, 0, t, one_in(3) ? at() : 0, 8, 0);
    break;
  }
  case 45: memset(scratch, 0, PAGE); CALL(1, select, below(200), one_in(2) ? scratch : at(), 0, 0, scratch + 512, 0); break;
  case 46: CALL(1, nanosleep, moment(), one_in(2) ? at() : 0, 0, 0, 0, 0); break;
  case 47: CALL(1, clock_nanosleep, one_in(6) ? 99 : CLOCK_MONOTONIC, 0, moment(), one_in(2) ? at() : 0, 0, 0); break;
  case 48: CALL(0, epoll_create1, 0, 0, 0, 0, 0, 0); break;
  case 49: {
    struct epoll_event *e = (struct epoll_event *)(one_in(3) ? at() : scratch);
    memset(scratch, 0, 64);
    ((struct epoll_event *)scratch)->events = EPOLLIN | EPOLLOUT;
    CALL(0, epoll_ctl, fd(), 1 + below(4), fd(), e, 0, 0);
    break;
  }
  case 50: CALL(0, epoll_wait, fd(), at(), one_in(4) ? len() : 1 + below(8), 0, 0, 0); break;
  case 51: CALL(0, eventfd2, below(10), EFD_NONBLOCK, 0, 0, 0, 0); break;
  case 52: CALL(0, timerfd_create, CLOCK_MONOTONIC, TFD_NONBLOCK, 0, 0, 0, 0); break;
  case 53: CALL(0, timerfd_gettime, fd(), at(), 0, 0, 0, 0); break;
  case 54: CALL(0, ftruncate, fd(), one_in(6) ? -1 : (long)below(30000), 0, 0, 0, 0); break;
  case 55: CALL(0, fcntl, fd(), PICK(int, F_GETFL, F_GETFD, F_GETPIPE_SZ, F_DUPFD), below(20), 0, 0, 0); break;
  case 56: CALL(0, fcntl, fd(), F_GETLK, at(), 0, 0, 0); break;
  case 57: CALL(0, mkdir, path(), 0700, 0, 0, 0, 0); break;
  case 58: CALL(0, rmdir, one_in(2) ? "dir" : at(), 0, 0, 0, 0, 0); break;
  case 59: CALL(0, unlink, path(), 0, 0, 0, 0, 0); break;
  case 60: CALL(0, rename, path(), path(), 0, 0, 0, 0); break;
  case 61: CALL(0, link, path(), path(), 0, 0, 0, 0); break;
  case 62: CALL(0, symlink, path(), path(), 0, 0, 0, 0); break;
  case 63: CALL(0, readlink, path(), at(), small(), 0, 0, 0); break;
  case 64: CALL(0, access, path(), below(8), 0, 0, 0, 0); break;
  case 65: CALL(0, getcwd, at(), len(), 0, 0, 0, 0); break;
  case 66: CALL(1, getdents64, fd(), at(), len(), 0, 0, 0); break;
  case 67: *(long *)scratch = (long)offset(); CALL(0, sendfile, fd(), fd(), one_in(2) ? at() : one_in(2) ? scratch : 0, small() % 10000, 0, 0); break;
  case 68: *(long *)scratch = (long)offset(); CALL(0, splice, fd(), one_in(3) ? scratch : 0, fd(), one_in(4) ? at() : 0, small() % 5000, SPLICE_F_NONBLOCK); break;
  case 69: *(long *)scratch = (long)offset(); CALL(0, copy_file_range, fd(), one_in(3) ? scratch : 0, fd(), one_in(4) ? at() : 0, small() % 5000, 0); break;
  case 70: CALL(1, clock_gettime, one_in(6) ? 99 : CLOCK_MONOTONIC, at(), 0, 0, 0, 0); break;
  case 71: CALL(1, gettimeofday, one_in(3) ? 0 : at(), one_in(3) ? at() : 0, 0, 0, 0, 0); break;
  case 72: CALL(0, uname, at(), 0, 0, 0, 0, 0); break;
  case 73: CALL(0, getrlimit, below(18), at(), 0, 0, 0, 0); break;
  case 74: CALL(1, getrandom, at(), small(), 0, 0, 0, 0); break;
  case 75: CALL(0, rt_sigprocmask, SIG_BLOCK, 0, at(), one_in(6) ? len() : 8, 0, 0); break;
  case 76: {
    struct {
      long type;
      char text[200];
    } *msg = (void *)(one_in(3) ? at() : good());
    if (one_in(2))
      CALL(0, msgsnd, queue, msg, below(200), IPC_NOWAIT, 0, 0);
    else
      CALL(0, msgrcv, queue, msg, one_in(5) ? len() : below(200), 0, IPC_NOWAIT | (one_in(2) ? MSG_NOERROR : 0), 0);
    break;
  }
  case 77: CALL(0, prctl, PR_GET_NAME, at(), 0, 0, 0, 0); break;
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  seed = strtoull(argv[1], NULL, 0) * 0x9e3779b97f4a7c15ull + 1;
  trace = getenv("GUEST_TRACE") != NULL;
  signal(SIGPIPE, SIG_IGN);
  for (int i = 0; i < 20; i++)
    guest_rand(&seed);
  const char *top = guest_tmp("random_calls");
  CHECK(mkdir(top, 0700) == 0 && chdir(top) == 0);
  // (Pointers lie in memory that is printed.)
  int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  arena = mmap((void *)0x100000000000, PAGES * PAGE, PROT_READ | PROT_WRITE, how, -1, 0);
  scratch = mmap((void *)0x110000000000, PAGE, PROT_READ | PROT_WRITE, how, -1, 0);
  CHECK(arena == (void *)0x100000000000 && scratch == (void *)0x110000000000);
  fill();
  for (int i = 0; i < PAGES; i++) {
    if (protection(i) == -1)
      CHECK(munmap(arena + i * PAGE, PAGE) == 0);
    else
      CHECK(mprotect(arena + i * PAGE, PAGE, protection(i)) == 0);
  }
  null = open("/dev/null", O_WRONLY);
  CHECK(null >= 0 && dup2(null, 200) == 200 && close(null) == 0);
  null = 200;
  // What descriptors 0 to 2 are is not the same in each run, and a select looks at them.
  CHECK(dup2(1, 201) == 201 && dup2(2, 202) == 202 && (out = fdopen(201, "w")) != NULL);
  for (int i = 0; i < 3; i++)
    CHECK(dup2(null, i) == i);
  queue = msgget(IPC_PRIVATE, 0600);
  CHECK(queue >= 0);
  for (int n = atoi(argv[2]); n > 0; n--)
    step();
  CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
  for (int i = 3; i < FDS + 3; i++)
    close(i);
  CHECK(chdir("..") == 0);
  char remove[5000];
  snprintf(remove, sizeof remove, "rm -rf '%s'", top);
  CHECK(system(remove) == 0);
  CHECK(fflush(out) == 0 && dup2(201, 1) == 1);
  guest_ok("random_calls");
}
