// build:
// Proves: futex_waitv and the newer futex calls give the turn away while they wait (in serial order the thread that was to
// wake them never ran), end by a wake, a time and a word that has changed.
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
static _Atomic uint32_t a, b;

static void *waker(void *p) {
  (void)p;
  usleep(2000);
  b = 1;
  syscall(SYS_futex, &b, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
  return NULL;
}

int main(void) {
  for (int round = 0; round < 20; round++) {
    a = b = 0;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, waker, NULL) == 0);
    struct waiter w[2] = {{0, (uintptr_t)&a, 2 | FUTEX_PRIVATE_FLAG, 0}, {0, (uintptr_t)&b, 2 | FUTEX_PRIVATE_FLAG, 0}};
    while (b == 0) {
      long r = syscall(449, w, 2, 0, NULL, 0);
      CHECK(r == 1 || (r == -1 && (errno == EAGAIN || errno == EINTR)) || r == 0);
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
