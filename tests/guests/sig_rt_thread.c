// build:
// deterministic
// Proves: signals with values that one thread is sent come each with its own value, in order. (The next one, which
// waited in the kernel already, was shown as the one that the log told of, and that one without its value.)
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#define ROUNDS 40
#define EACH 8

static sem_t came, over;
static int got, wrong;

static void handler(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  wrong += info->si_code != SI_QUEUE || info->si_value.sival_int != got;
  got++;
  CHECK(sem_post(&came) == 0);
}

static void wait_for(sem_t *s) {
  while (sem_wait(s) != 0)
    ;
}

static void *thread(void *arg) {
  (void)arg;
  wait_for(&over);
  return NULL;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGRTMIN, &action, NULL) == 0);
  CHECK(sem_init(&came, 0, 0) == 0 && sem_init(&over, 0, 0) == 0);
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, thread, NULL));
  for (int i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < EACH; k++) {
      union sigval v = {.sival_int = i * EACH + k};
      CHECK(!pthread_sigqueue(t, SIGRTMIN, v));
    }
    for (int k = 0; k < EACH; k++)
      wait_for(&came);
  }
  CHECK(sem_post(&over) == 0);
  CHECK(!pthread_join(t, NULL));
  CHECK(got == ROUNDS * EACH && wrong == 0);
  guest_ok("sig_rt_thread");
  return 0;
}
