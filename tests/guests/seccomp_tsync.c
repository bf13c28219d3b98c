// build: -pthread
// not in clocks: from which call on another thread has the filter nothing says there
// deterministic
// loses
// ascends
// Proves: a filter that is given to all threads holds for them from then on; where one has another filter, none gets it.
#include "guest.h"
#include "seccomp.h"
#include <pthread.h>
#include <sys/wait.h>

static pthread_barrier_t barrier;

static long deny(int nr, int error, unsigned flags) {
  struct sock_filter code[] = {LOAD(nr), IF(nr, SECCOMP_RET_ERRNO | error), SAY(SECCOMP_RET_ALLOW)};
  struct sock_fprog p = {4, code};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p);
}

static int errno_of(int nr) {
  errno = 0;
  return syscall(nr) == -1 ? errno : 0;
}

static void *thread(void *arg) {
  long *tid = arg;
  *tid = syscall(SYS_gettid);
  CHECK(errno_of(SYS_sync) == 0);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  CHECK(errno_of(SYS_sync) == 40 && prctl(PR_GET_SECCOMP) == 2);
  // One with its own.
  CHECK(deny(SYS_getppid, 41, 0) == 0);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  CHECK(errno_of(SYS_getpgrp) == 0);
  return NULL;
}

int main(void) {
  pthread_t t;
  long tid = 0;
  no_new_privs();
  CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
  // Alone.
  CHECK(deny(SYS_getuid, 3, SECCOMP_FILTER_FLAG_TSYNC) == 0);
  CHECK(errno_of(SYS_getuid) == 3);
  CHECK(pthread_create(&t, NULL, thread, &tid) == 0);
  pthread_barrier_wait(&barrier);
  CHECK(deny(SYS_sync, 40, SECCOMP_FILTER_FLAG_TSYNC) == 0);
  CHECK(errno_of(SYS_sync) == 40);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  CHECK(deny(SYS_getpgrp, 42, SECCOMP_FILTER_FLAG_TSYNC) == tid);
  CHECK(deny(SYS_getpgrp, 42, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH) == -1 && errno == ESRCH);
  CHECK(errno_of(SYS_getpgrp) == 0);
  pthread_barrier_wait(&barrier);
  CHECK(pthread_join(t, NULL) == 0);
  CHECK(deny(SYS_getpgrp, 42, SECCOMP_FILTER_FLAG_TSYNC) == 0);
  CHECK(errno_of(SYS_getpgrp) == 42);
  guest_ok("seccomp_tsync");
}
