// Descriptors: where they come from, what they are told, where they go.
#include "calls.h"
#include <sys/file.h>
#include <sys/stat.h>

// A descriptor whose inode is this program's own: eventfd, epoll and their like have one for all of the machine.
static int own_fd(void) {
  int f = fd();
  struct stat s;
  return fstat(f, &s) == 0 && (s.st_mode & S_IFMT) == 0 ? -1 : f;
}

// Nothing may sleep: O_NONBLOCK everywhere.
static int open_flags(void) {
  int flags = O_NONBLOCK | PICK(int, O_RDONLY, O_WRONLY, O_RDWR, O_RDWR, 3);
  flags |= one_in(2) ? O_CREAT : 0;
  flags |= one_in(5) ? O_TRUNC : 0;
  flags |= one_in(6) ? O_APPEND : 0;
  flags |= one_in(10) ? O_DIRECTORY : 0;
  flags |= one_in(10) ? O_EXCL : 0;
  flags |= one_in(10) ? O_CLOEXEC : 0;
  flags |= one_in(12) ? O_NOFOLLOW : 0;
  flags |= one_in(16) ? O_PATH : 0;
  flags |= one_in(20) ? O_SYNC : 0;
  return flags;
}
static void do_open(void) {
  const char *p = file_path();
  int flags = open_flags();
  switch (below(4)) {
  case 0:
    CALL(open, p, flags, 0700);
    break;
  case 1: {
    uint64_t how[4] = {(uint64_t)flags, flags & O_CREAT ? 0600 : 0, PICK(uint64_t, 0, 0, 4, 8, 0x10, 0x100), one_in(4)};
    memcpy(me->scratch, how, sizeof how);
    CALL(openat2, AT_FDCWD, p, one_in(8) ? at() : me->scratch, PICK(long, 24, 24, 24, 32, 0, 23, 4096, 5000));
    break;
  }
  default:
    CALL(openat, one_in(6) ? fd() : one_in(4) ? TOP_FD : AT_FDCWD, p, flags, 0700);
  }
}
static void do_creat(void) {
  const char *p = file_path();
  // (A pipe's other end may be missing: creat would wait for it.)
  struct stat s;
  if (stat(p, &s) == 0 && S_ISFIFO(s.st_mode))
    return;
  CALL(creat, p, one_in(4) ? 0 : 0600);
}
static void do_close(void) { CALL(close, fd()); }
static void do_dup(void) { CALL(dup, fd()); }
static int a_place(void) { return one_in(12) ? PICK(int, -1, INT_MAX, INT_MIN) : me->first_fd + (int)below(me->fds); }
static void do_dup2(void) {
  if (one_in(3))
    CALL(dup3, fd(), a_place(), PICK(int, 0, O_CLOEXEC, O_NONBLOCK, 1));
  else
    CALL(dup2, fd(), a_place());
}
static void do_close_range(void) {
  unsigned from = FIRST_FD + below(FDS), to = from + below(4);
  if (one_in(4))
    to = from - 1 - below(3);
  // (CLOSE_RANGE_UNSHARE is refused; a flag that is none is EINVAL.)
  CALL(close_range, from, to, PICK(int, 0, 4, 0, 8));
}
static void do_pipe(void) { CALL(pipe2, one_in(4) ? at() : good(), O_NONBLOCK | FLAGS(O_CLOEXEC) | (one_in(12) ? O_APPEND : 0)); }
static void do_memfd(void) { CALL(memfd_create, one_in(4) ? at() : (void *)named("m"), PICK(int, 1, 2, 3, 0, 0x1000)); }
static void do_lseek(void) { CALL(lseek, fd(), one_in(4) ? -(long)below(300) : (long)offset(), below(7)); }
static void do_ftruncate(void) { CALL(ftruncate, fd(), one_in(6) ? PICK(long, -1, LONG_MAX, 1l << 40) : (long)below(30000)); }
static void do_fallocate(void) { CALL(fallocate, fd(), PICK(int, 0, 1, 3, 2, 0x10, 0x11, 0x80), below(5) * PAGE, (long)below(4) * PAGE - 1); }
static void do_fcntl(void) {
  int f = fd();
  switch (below(12)) {
  case 0:
    CALL(fcntl, f, F_DUPFD, below(30) - 2);
    break;
  case 1:
    CALL(fcntl, f, F_DUPFD_CLOEXEC, below(30));
    break;
  case 2:
    CALL(fcntl, f, F_SETFD, below(3));
    break;
  case 3:
    CALL(fcntl, f, F_SETFL, O_NONBLOCK | FLAGS(O_APPEND, O_NOATIME));
    break;
  case 4:
    CALL(fcntl, f, F_SETPIPE_SZ, PICK(long, 4096, 8192, 65536, 1 << 20, 0, -1, 5000, 1ul << 32));
    break;
  case 5:
    CALL(fcntl, f, F_SETSIG, PICK(int, 0, 12, 65, -1));
    break;
  case 6:
    CALL(fcntl, f, F_ADD_SEALS, PICK(int, 2, 4, 1, 0x20, 0x100));
    break;
  case 7:
    *(uint64_t *)me->scratch = below(8);
    CALL(fcntl, own_fd(), PICK(int, F_SET_RW_HINT, F_GET_RW_HINT), one_in(4) ? at() : me->scratch);
    break;
  default:
    CALL(fcntl, f, PICK(int, F_GETFL, F_GETFD, F_GETPIPE_SZ, F_GETSIG, F_GETOWN, F_GET_SEALS, F_GETLEASE), below(20));
  }
}
static void do_lock(void) {
  struct flock l = {.l_type = PICK(short, F_RDLCK, F_WRLCK, F_UNLCK, 7), .l_whence = PICK(short, 0, 1, 2, 5)};
  l.l_start = one_in(6) ? -1 : (long)below(100), l.l_len = one_in(6) ? -5 : (long)below(100), l.l_pid = one_in(8);
  memcpy(me->loose, &l, sizeof l);
  CALL(fcntl, own_fd(), PICK(int, F_SETLK, F_GETLK, F_SETLKW, F_OFD_GETLK), one_in(5) ? nowhere() : me->loose);
  memcpy(&l, me->loose, sizeof l);
  print("  type %d, %ld bytes from %ld on\n", l.l_type, (long)l.l_len, (long)l.l_start);
}
static void do_flock(void) { CALL(flock, own_fd(), LOCK_NB | PICK(int, LOCK_SH, LOCK_EX, LOCK_UN, 0, 16)); }
static void do_fstat(void) {
  struct stat *s = one_in(3) ? at() : good();
  int f = fd();
  struct stat seen;
  CALL_HOW(VARIES, fstat, f, s);
  if (fstat(f, &seen) == 0)
    print("  mode %o, size %ld, links %ld\n", seen.st_mode, S_ISREG(seen.st_mode) ? (long)seen.st_size : 0, (long)seen.st_nlink);
}
static void do_fsync(void) {
  if (one_in(2))
    CALL(fdatasync, fd());
  else
    CALL(sync_file_range, fd(), offset(), small(), PICK(int, 0, 1, 2, 4, 8));
}
static void do_advise(void) {
  if (one_in(2))
    CALL(fadvise64, fd(), offset(), small(), below(8));
  else
    CALL(readahead, fd(), offset(), small());
}
static void do_fmode(void) {
  switch (below(3)) {
  case 0:
    CALL(fchmod, own_fd(), PICK(int, 0700, 0600, 0644, 01777, 0170777));
    break;
  case 1:
    CALL(fchown, own_fd(), -1, -1);
    break;
  default:
    CALL_HOW(VARIES, fstatfs, fd(), at());
  }
}

const struct action file_actions[] = {
    {"open", do_open, 8, 0},
    {"creat", do_creat, 1, 0},
    {"close", do_close, 1, 0},
    {"dup", do_dup, 1, 0},
    {"dup2", do_dup2, 2, 0},
    {"close_range", do_close_range, 1, 0},
    {"pipe", do_pipe, 3, 0},
    {"memfd", do_memfd, 1, 0},
    {"lseek", do_lseek, 2, 1},
    {"ftruncate", do_ftruncate, 1, 1},
    {"fallocate", do_fallocate, 1, 1},
    {"fcntl", do_fcntl, 3, 0},
    {"lock", do_lock, 1, 0},
    {"flock", do_flock, 1, 0},
    {"fstat", do_fstat, 1, 1},
    {"fsync", do_fsync, 1, 1},
    {"advise", do_advise, 1, 1},
    {"fmode", do_fmode, 1, 0},
    {0},
};
