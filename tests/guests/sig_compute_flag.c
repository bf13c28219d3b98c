// build:
// deterministic
// Proves: a loop that only waits for a handler's flag is left soon, with one thread and with another one that
// sleeps in a call.
#include "guest.h"
#include <pthread.h>
#include <signal.h>
static volatile sig_atomic_t hits;
static void on(int s) {
  CHECK(s == SIGALRM);
  hits++;
}
static int fds[2];
static void *reads(void *arg) {
  char c;
  CHECK(read(fds[0], &c, 1) == 1);
  return arg;
}
int main(void) {
  CHECK(signal(SIGALRM, on) != SIG_ERR);
  CHECK(alarm(1) == 0);
  while (hits == 0)
    ;
  puts("one thread");
  CHECK(pipe(fds) == 0);
  pthread_t t;
  sigset_t all, old;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, &old) == 0);
  CHECK(pthread_create(&t, NULL, reads, NULL) == 0);
  CHECK(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
  CHECK(alarm(1) == 0);
  while (hits == 1)
    ;
  CHECK(write(fds[1], "x", 1) == 1);
  CHECK(pthread_join(t, NULL) == 0);
  guest_ok("sig_compute_flag");
}
