// build:
// deterministic
// loses
// Proves: pthread_kill reaches a thread that computes without a call, and its handler may leave the loop by siglongjmp.
#include "guest.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
static volatile int let_go;
static int fds[2];
static sigjmp_buf out;
static void on(int s) { siglongjmp(out, s); }
static void *computes(void *arg) {
  CHECK(signal(SIGUSR1, on) != SIG_ERR);
  int s = sigsetjmp(out, 1);
  if (s == 0) {
    CHECK(write(fds[1], "x", 1) == 1);
    while (!let_go)
      ;
  }
  CHECK(s == SIGUSR1);
  return arg;
}
int main(void) {
  pthread_t t;
  char c;
  CHECK(pipe(fds) == 0);
  CHECK(pthread_create(&t, NULL, computes, NULL) == 0);
  CHECK(read(fds[0], &c, 1) == 1);
  usleep(50000);
  CHECK(pthread_kill(t, SIGUSR1) == 0);
  CHECK(pthread_join(t, NULL) == 0);
  guest_ok("sig_compute_kill");
}
