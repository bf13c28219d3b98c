// build:
// loses
// Proves: futex_waitv and the newer futex calls give the turn away while they wait (in serial order the thread that was to
// wake them never ran), end by a wake, a time and a word that has changed; and what they return is the same in all replicas
// (with clocks errno was looked at in one whose word had changed before the call, and not in the others).
#include "guest.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

struct waiter {
  uint64_t val, uaddr;
  uint32_t flags, reserved;
};
static _Atomic uint32_t a, b, c;
static _Atomic uint32_t woken;

static void *waker(void *p) {
  (void)p;
  usleep(2000);
  b = 1;
  syscall(SYS_futex, &b, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
  c = 1;
  long n = syscall(454, &c, 0xffffffffl, 1, 2 | FUTEX_PRIVATE_FLAG);
  CHECK(n >= 0 || errno == ENOSYS); // Older than Linux 6.7.
  if (n < 0)
    syscall(SYS_futex, &c, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
  if (n > 0)
    woken++; // An operation that the others would miss, or have besides.
  return NULL;
}

int main(void) {
  for (int round = 0; round < 20; round++) {
    a = b = c = 0;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, waker, NULL) == 0);
    struct waiter w[2] = {{0, (uintptr_t)&a, 2 | FUTEX_PRIVATE_FLAG, 0}, {0, (uintptr_t)&b, 2 | FUTEX_PRIVATE_FLAG, 0}};
    while (b == 0) {
      long r = syscall(449, w, 2, 0, NULL, 0);
      CHECK(r == 1 || (r == -1 && (errno == EAGAIN || errno == EINTR)) || r == 0);
    }
    while (c == 0) {
      long r = syscall(455, &c, 0, 0xffffffffl, 2 | FUTEX_PRIVATE_FLAG, NULL, 0);
      CHECK(r == 0 || errno == EAGAIN || errno == EINTR || errno == ENOSYS);
      if (r < 0 && errno == ENOSYS)
        syscall(SYS_futex, &c, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
    }
    CHECK(pthread_join(t, NULL) == 0);
    struct timespec soon;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &soon) == 0);
    soon.tv_nsec += 1000000;
    if (soon.tv_nsec >= 1000000000)
      soon.tv_sec++, soon.tv_nsec -= 1000000000;
    w[1].val = 1;
    CHECK(syscall(449, w, 2, 0, &soon, CLOCK_MONOTONIC) == -1 && errno == ETIMEDOUT);
  }
  guest_ok("futex_waitv");
}
