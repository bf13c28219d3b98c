// Reading and writing: what descriptors of all kinds do with buffers of all kinds.
#include "calls.h"
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

// (Nothing is as large as a large length, so that a write ends where memory does.)
static void do_read(void) { CALL(read, fd(), at(), len()); }
static void do_write(void) { CALL(write, fd(), at(), len() % 100000); }
static void write_huge(void) { CALL(write, fd(), one_in(2) ? nowhere() : at(), len()); }
static void do_pread(void) { CALL(pread64, fd(), at(), len(), offset()); }
static void do_pwrite(void) { CALL(pwrite64, fd(), at(), len() % 50000, offset()); }

static void do_readv(void) {
  int n;
  struct iovec *v = vector(&n);
  CALL(readv, fd(), v, n);
}
static void do_writev(void) {
  int n;
  struct iovec *v = vector(&n);
  CALL(writev, fd(), v, n);
}
static void do_preadv(void) {
  int n;
  struct iovec *v = vector(&n);
  if (one_in(2))
    CALL(preadv, fd(), v, n, offset(), 0);
  else // (RWF_NOWAIT says what is in the page cache.)
    CALL(preadv2, fd(), v, n, one_in(4) ? -1ul : offset(), 0, PICK(int, 0, 0, 1, 2, 4, 0x40000000));
}
static void do_pwritev(void) {
  int n;
  struct iovec *v = vector(&n);
  if (one_in(2))
    CALL(pwritev, fd(), v, n, offset(), 0);
  else
    CALL(pwritev2, fd(), v, n, one_in(4) ? -1ul : offset(), 0, PICK(int, 0, 0, 1, 2, 4, 0x10, 0x40000000));
}

// An offset that a call reads and writes: in memory of all kinds.
static long *an_offset(void) {
  *(long *)me->scratch = (long)offset();
  return one_in(2) ? NULL : one_in(4) ? at() : (void *)me->scratch;
}
static void do_sendfile(void) { CALL(sendfile, fd(), fd(), an_offset(), small() % 10000); }
static void do_splice(void) {
  long *in = an_offset();
  long *out = one_in(3) ? an_offset() : NULL;
  CALL(splice, fd(), in, fd(), out, small() % 9000, 2 | FLAGS(1, 4, 8) | (one_in(20) ? 0x100 : 0));
}
static void do_tee(void) { CALL(tee, fd(), fd(), small() % 9000, 2 | FLAGS(1, 4)); }
static void do_vmsplice(void) {
  // (From memory into a pipe: what a reading end would write is refused. The pages are the pipe's from then on, so that a
  // later change of theirs shows there: only pages that nobody changes.)
  struct iovec *v = (struct iovec *)me->scratch;
  *v = (struct iovec){one_in(4) ? (void *)8 : me->arena + 2 * PAGE + below(100), small() % 6000};
  int p[2];
  if (pipe2(p, O_NONBLOCK) != 0)
    return;
  CALL(vmsplice, p[1], one_in(8) ? nowhere() : v, one_in(8) ? PICK(long, 0, -1, 1025) : 1, 2 | FLAGS(1, 4, 8));
  CALL(read, p[0], at(), small());
  close(p[0]), close(p[1]);
}
static void do_copy_file_range(void) {
  long *in = an_offset();
  long *out = one_in(3) ? an_offset() : NULL;
  CALL(copy_file_range, fd(), in, fd(), out, small() % 9000, one_in(12) ? 1 : 0);
}
static void do_ioctl(void) {
  // FIONREAD, FIOCLEX, FIONCLEX, FIGETBSZ, TCGETS, TIOCGWINSZ. (FIONBIO would let calls sleep.)
  long command = PICK(long, 0x541b, 0x541b, 0x5451, 0x5450, 2, 0x5401, 0x5413);
  CALL(ioctl, fd(), command, at());
}

const struct action transfer_actions[] = {
    {"read", do_read, 6, 1},
    {"write", do_write, 6, 1},
    {"write_huge", write_huge, 1, 1},
    {"pread", do_pread, 3, 1},
    {"pwrite", do_pwrite, 3, 1},
    {"readv", do_readv, 3, 1},
    {"writev", do_writev, 3, 1},
    {"preadv", do_preadv, 2, 1},
    {"pwritev", do_pwritev, 2, 1},
    {"sendfile", do_sendfile, 2, 1},
    {"splice", do_splice, 2, 1},
    {"tee", do_tee, 1, 1},
    {"vmsplice", do_vmsplice, 1, 0},
    {"copy_file_range", do_copy_file_range, 2, 1},
    {"ioctl", do_ioctl, 1, 1},
    {0},
};
