// build: -lrt
// deterministic
// loses
// Proves: timer_create with a signal and a value, and with a thread.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
static volatile sig_atomic_t hits, value;
static sem_t called;
static void on(int sig, siginfo_t *si, void *uc) {
  (void)sig;
  (void)uc;
  hits++;
  value = si->si_value.sival_int;
}
static void notify(union sigval v) {
  CHECK(v.sival_int == 9);
  sem_post(&called);
}
int main(void) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGRTMIN + 1, &sa, NULL) == 0);
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGRTMIN + 1);
  CHECK(sigprocmask(SIG_BLOCK, &block, &old) == 0);
  timer_t t;
  struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
  ev.sigev_value.sival_int = 77;
  CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
  struct itimerspec its = {{0, 0}, {0, 5000000}};
  CHECK(timer_settime(t, 0, &its, NULL) == 0);
  while (hits == 0)
    sigsuspend(&old);
  CHECK(value == 77 && timer_delete(t) == 0);
  CHECK(sem_init(&called, 0, 0) == 0);
  memset(&ev, 0, sizeof ev);
  ev.sigev_notify = SIGEV_THREAD;
  ev.sigev_notify_function = notify;
  ev.sigev_value.sival_int = 9;
  CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
  CHECK(timer_settime(t, 0, &its, NULL) == 0);
  while (sem_wait(&called) != 0)
    CHECK(errno == EINTR);
  CHECK(timer_delete(t) == 0);
  guest_ok("time_posix_timer");
}
