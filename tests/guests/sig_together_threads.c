// build: -pthread
// deterministic
// Proves: signals that are let in together in several threads at once, each with its own, run their handlers in Linux's
// order; and those that come together to a thread that waits in a semaphore or a condition, from others, all come.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

enum { THREADS = 4, ROUNDS = 20, STORMS = 60 };
static __thread volatile int trace[64], n;
static sem_t sem, ready, told;

static void on(int sig) {
  if (n < 64)
    trace[n++] = sig;
}
static void on_storm(int sig) {
  (void)sig;
  CHECK(!sem_post(&told));
}

static void *work(void *arg) {
  long me = (long)arg;
  uint64_t h = 0;
  sigset_t set, before;
  sigemptyset(&set);
  for (int s = SIGRTMIN; s < SIGRTMIN + 5; s++)
    sigaddset(&set, s);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGUSR2);
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(!pthread_sigmask(SIG_BLOCK, &set, &before));
    for (int k = 0; k < 5; k++)
      CHECK(!pthread_kill(pthread_self(), SIGRTMIN + (int)((me + i + k * 2) % 5)));
    CHECK(!pthread_kill(pthread_self(), SIGUSR2) && !pthread_kill(pthread_self(), SIGUSR1));
    n = 0;
    CHECK(!pthread_sigmask(SIG_SETMASK, &before, NULL));
    CHECK(n == 7);
    for (int k = 0; k < n; k++)
      h = guest_mix(h, trace[k]);
  }
  return (void *)h;
}

static void *waits(void *arg) {
  (void)arg;
  sem_post(&ready);
  while (sem_wait(&sem) != 0)
    CHECK(errno == EINTR);
  return NULL;
}

int main(void) {
  struct sigaction sa = {.sa_handler = on}, storm = {.sa_handler = on_storm};
  sigaddset(&sa.sa_mask, SIGRTMIN + 3);
  for (int s = SIGRTMIN; s < SIGRTMIN + 5; s++)
    CHECK(!sigaction(s, &sa, NULL));
  CHECK(!sigaction(SIGUSR1, &sa, NULL) && !sigaction(SIGUSR2, &sa, NULL));
  for (int s = SIGRTMIN + 5; s < SIGRTMIN + 10; s++)
    CHECK(!sigaction(s, &storm, NULL));
  pthread_t t[THREADS], w;
  for (long i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  for (int i = 0; i < THREADS; i++) {
    void *h;
    CHECK(!pthread_join(t[i], &h));
    printf("%d %llx\n", i, (unsigned long long)h);
  }
  CHECK(!sem_init(&sem, 0, 0) && !sem_init(&ready, 0, 0) && !sem_init(&told, 0, 0));
  CHECK(!pthread_create(&w, NULL, waits, NULL) && !sem_wait(&ready));
  for (int i = 0; i < STORMS; i++)
    for (int s = SIGRTMIN + 9; s >= SIGRTMIN + 5; s--)
      CHECK(!pthread_kill(w, s));
  for (int i = 0; i < 5 * STORMS; i++)
    CHECK(!sem_wait(&told));
  CHECK(!sem_post(&sem) && !pthread_join(w, NULL));
  guest_ok("sig_together_threads");
}
