// build: -pthread
// deterministic
// loses
// Proves: real-time signals that the program sends itself are counted: each of several of one number comes, to the thread
// or to the process that it is for, whoever leads meanwhile.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
enum { EACH = 6, ROUNDS = 4 };
static volatile sig_atomic_t own, shared;

static void on(int signal, siginfo_t *info, void *context) {
  (void)context;
  CHECK(info->si_pid == getpid() && info->si_code == (signal == SIGRTMIN + 1 ? SI_TKILL : SI_USER));
  if (signal == SIGRTMIN + 1)
    own++;
  else
    shared++;
}

static void *idle(void *arg) {
  sem_t *end = arg;
  while (sem_wait(end) != 0)
    CHECK(errno == EINTR);
  return NULL;
}

int main(void) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  sigset_t set;
  sigemptyset(&set);
  for (int k = 1; k <= 2; k++) {
    CHECK(!sigaction(SIGRTMIN + k, &sa, NULL));
    sigaddset(&set, SIGRTMIN + k);
  }
  CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
  pthread_t other;
  sem_t end;
  CHECK(!sem_init(&end, 0, 0) && !pthread_create(&other, NULL, idle, &end));
  for (int i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < EACH; k++) {
      CHECK(!pthread_kill(pthread_self(), SIGRTMIN + 1));
      CHECK(!kill(getpid(), SIGRTMIN + 2));
    }
    CHECK(!pthread_sigmask(SIG_UNBLOCK, &set, NULL) && !pthread_sigmask(SIG_BLOCK, &set, NULL));
    printf("%d: %d of the thread's, %d of the process's\n", i, own, shared);
    CHECK(own == EACH * (i + 1) && shared == own);
  }
  CHECK(!sem_post(&end) && !pthread_join(other, NULL));
  guest_ok("sig_queued");
  return 0;
}
