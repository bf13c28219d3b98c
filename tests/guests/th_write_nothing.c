// build:
// deterministic
// loses
// Proves: a program of several threads that writes nothing from an address that no program has is told so, as natively.
// (What several threads write is copied first; of nothing a copy was made, and its address given to the kernel.)
#include "guest.h"
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

static int ready[2];
static void *waits(void *p) {
  char c;
  CHECK(read(ready[0], &c, 1) == 1);
  return p;
}
int main(void) {
  CHECK(pipe(ready) == 0);
  pthread_t t;
  CHECK(pthread_create(&t, NULL, waits, NULL) == 0);
  int p[2], s[2];
  CHECK(pipe(p) == 0 && socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0);
  void *bad = (void *)0x8000000000000000;
  CHECK(syscall(SYS_write, p[1], bad, 0) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_write, p[1], (void *)8, 0) == 0);
  CHECK(syscall(SYS_write, p[1], NULL, 0) == 0);
  struct iovec v[2] = {{"", 0}, {bad, 0}};
  CHECK(syscall(SYS_writev, p[1], v, 2) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_writev, p[1], v, 1) == 0);
  printf("no buffers: %ld\n", syscall(SYS_writev, p[1], bad, 0));
  printf("message: %ld\n", syscall(SYS_sendto, s[1], bad, 0, 0, NULL, 0));
  CHECK(write(ready[1], "!", 1) == 1 && pthread_join(t, NULL) == 0);
  guest_ok("th_write_nothing");
}
