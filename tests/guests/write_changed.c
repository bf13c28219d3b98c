// build:
// loses
// not in clocks: what plain stores of another thread put into a buffer differs there, and is reported
// Proves: what a thread writes may be changed by another one meanwhile, as in a database's log, of whose last block
// only the beginning counts: while the writer waits for the others, for its turn and for the kernel. (The
// leader took such a change for a flipped bit and crashed, one replica after the other, by a SIGILL that the
// program's handler got.) Every byte that counts has to be in the file.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { SMALL = 300, LARGE = 3 << 20, BLOCK = 65536, HEAD = 512, ROUNDS = 120 };
static char buffer[LARGE + 8192] __attribute__((aligned(4096)));
static _Atomic int over;

static void on_ill(int s) {
  (void)s;
  static const char text[] = "the program got a SIGILL\n";
  if (write(2, text, sizeof text - 1) < 0)
    _exit(98);
  _exit(97);
}

// Changes what does not count, all the time, and gives way now and then.
static void *changer(void *p) {
  uint64_t s = 88172645463325252ull + (uintptr_t)p;
  while (!over) {
    for (int i = 0; i < 64; i++) {
      uint64_t r = guest_rand(&s);
      buffer[HEAD + r % (BLOCK - HEAD)] ^= (char)r;
      buffer[BLOCK + r % (LARGE - BLOCK)] ^= (char)r;
    }
    usleep(s % 50);
  }
  return NULL;
}

// What counts of a block has its number all over.
static void number(char *at, int n) {
  for (int i = 0; i < HEAD; i++)
    at[i] = (char)(n * 7 + i);
}

static void check(int f, off_t at, int n) {
  char head[HEAD], want[HEAD];
  number(want, n);
  CHECK(pread(f, head, HEAD, at) == HEAD);
  CHECK(memcmp(head, want, HEAD) == 0);
}

int main(void) {
  signal(SIGILL, on_ill);
  const char *path = guest_tmp("write_changed");
  int f = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(f >= 0);
  int p[2], s[2];
  CHECK(pipe(p) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
  pthread_t t[2];
  for (long i = 0; i < 2; i++)
    CHECK(pthread_create(&t[i], NULL, changer, (void *)i) == 0);
  char got[BLOCK];
  off_t end = 0;
  for (int n = 0; n < ROUNDS; n++) {
    number(buffer, n);
    CHECK(pwrite(f, buffer, BLOCK, end) == BLOCK);
    check(f, end, n);
    CHECK(lseek(f, end, SEEK_SET) == end);
    CHECK(write(f, buffer, 4096) == 4096);
    check(f, end, n);
    struct iovec v[3] = {{buffer, HEAD + 77}, {buffer + 1, 0}, {buffer + HEAD + 77, 9000}};
    CHECK(pwritev(f, v, 3, end + BLOCK) == HEAD + 77 + 9000);
    check(f, end + BLOCK, n);
    CHECK(write(p[1], buffer, SMALL + HEAD) == SMALL + HEAD);
    CHECK(read(p[0], got, sizeof got) == SMALL + HEAD && memcmp(got, buffer, HEAD) == 0);
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};
    CHECK(sendmsg(s[0], &m, 0) == HEAD + 77 + 9000);
    CHECK(read(s[1], got, sizeof got) == HEAD + 77 + 9000 && memcmp(got, buffer, HEAD) == 0);
    CHECK(send(s[0], buffer, 700, 0) == 700);
    CHECK(read(s[1], got, sizeof got) == 700 && memcmp(got, buffer, HEAD) == 0);
    end += BLOCK + 12288;
    if (n % 20 == 0) {
      CHECK(pwrite(f, buffer, LARGE, end) == LARGE);
      check(f, end, n);
      end += LARGE;
    }
    if (n % 40 == 0) {
      pid_t child = fork();
      if (child == 0) {
        CHECK(pwrite(f, buffer, BLOCK, end) == BLOCK);
        check(f, end, n);
        _exit(0);
      }
      int status;
      CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
  }
  over = 1;
  for (int i = 0; i < 2; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  CHECK(unlink(path) == 0);
  guest_ok("write_changed");
}
