// build:
// deterministic
// turns
// ascends
// not in data: who asks over and over whether it is cancelled keeps the turn there
// not in code: replicas of different layouts do not go over to serial order
// Proves: cancellation of a thread in read, in cond_wait and by testcancel:
// cleanup handlers run, result is PTHREAD_CANCELED (SIGCANCEL and unwinding
// through a rewritten call).
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t ready;
static int cleaned, fds[2];
static void clean(void *held) {
  if (!held)
    pthread_mutex_lock(&m);
  cleaned++;
  pthread_mutex_unlock(&m);
}
static void *body(void *arg) {
  char x;
  switch ((intptr_t)arg) {
  case 0:
    pthread_cleanup_push(clean, NULL);
    CHECK(!sem_post(&ready));
    (void)!read(fds[0], &x, 1);
    pthread_cleanup_pop(0);
    break;
  case 1:
    pthread_mutex_lock(&m);
    pthread_cleanup_push(clean, (void *)1);
    CHECK(!sem_post(&ready));
    for (;;)
      pthread_cond_wait(&c, &m);
    pthread_cleanup_pop(0);
    break;
  default:
    pthread_cleanup_push(clean, NULL);
    CHECK(!sem_post(&ready));
    for (;;)
      pthread_testcancel();
    pthread_cleanup_pop(0);
  }
  return NULL;
}
int main(void) {
  CHECK(pipe(fds) == 0 && !sem_init(&ready, 0, 0));
  for (intptr_t i = 0; i < 3; i++) {
    pthread_t t;
    void *r;
    CHECK(!pthread_create(&t, NULL, body, (void *)i) && !sem_wait(&ready));
    usleep(5000);
    CHECK(!pthread_cancel(t) && !pthread_join(t, &r));
    CHECK(r == PTHREAD_CANCELED && cleaned == i + 1);
  }
  guest_ok("th_cancel");
}
