// build:
// loses
// Proves: the usual server arrangement: all signals blocked, one thread in
// sigwait, others send with pthread_kill and kill; arrivals are printed.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
static sigset_t all;
static sem_t arrived;
static void *waiter(void *arg) {
  (void)arg;
  int s, count = 0;
  do {
    CHECK(sigwait(&all, &s) == 0);
    printf("got %d\n", s == SIGTERM ? -1 : s - SIGRTMIN);
    count++;
    CHECK(!sem_post(&arrived));
  } while (s != SIGTERM);
  return (void *)(intptr_t)count;
}
static pthread_t w;
static void *sender(void *arg) {
  for (int i = 0; i < 5; i++)
    CHECK(pthread_kill(w, SIGRTMIN + (int)(intptr_t)arg) == 0);
  return NULL;
}
int main(void) {
  CHECK(!sem_init(&arrived, 0, 0));
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
  CHECK(pthread_create(&w, NULL, waiter, NULL) == 0);
  pthread_t t[3];
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_create(&t[i], NULL, sender, (void *)(intptr_t)i));
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_join(t[i], NULL));
  for (int i = 0; i < 15; i++) // a pending SIGTERM would overtake
    CHECK(!sem_wait(&arrived));
  CHECK(kill(getpid(), SIGTERM) == 0);
  void *n;
  CHECK(!pthread_join(w, &n) && (intptr_t)n == 16);
  guest_ok("sig_sigwait_threads");
}
