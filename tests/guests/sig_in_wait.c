// build: -pthread -O2
// Proves: a signal's handler that interrupts pthread_cond_wait or sem_wait finds the same in what the C library keeps of its thread, in
// leader and follower: stdio asks there whether the thread may be cancelled at any moment.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#define ROUNDS 15

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static pthread_t waits;
static int ready;
static volatile sig_atomic_t handled;

static void on_signal(int signal) {
  (void)signal;
  fflush(NULL);
  handled++;
}

static void *interrupt(void *arg) {
  (void)arg;
  for (int i = 0; i < 2 * ROUNDS; i++) {
    usleep(3000);
    pthread_kill(waits, SIGUSR1);
    usleep(3000);
    if (i % 2) {
      sem_post(&sem);
      continue;
    }
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  CHECK(sem_init(&sem, 0, 0) == 0);
  waits = pthread_self();
  CHECK(pthread_create(&thread, NULL, interrupt, NULL) == 0);
  for (int i = 0; i < 2 * ROUNDS; i++) {
    if (i % 2) {
      while (sem_wait(&sem) != 0)
        continue;
      continue;
    }
    pthread_mutex_lock(&mutex);
    while (!ready)
      pthread_cond_wait(&cond, &mutex);
    ready = 0;
    pthread_mutex_unlock(&mutex);
    printf("round %d\n", i);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(handled > 0 && handled <= 2 * ROUNDS);
  guest_ok("sig_in_wait");
  return 0;
}
