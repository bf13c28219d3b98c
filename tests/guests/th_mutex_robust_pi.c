// build:
// beyond
// deterministic
// Proves: robust mutex after its owner's death (EOWNERDEAD), and
// priority inheritance: kernel-known owners, so thread ids must agree.
#include "guest.h"
#include <pthread.h>
static pthread_mutex_t robust, pi;
static long count;
static void *die_holding(void *arg) {
  (void)arg;
  CHECK(!pthread_mutex_lock(&robust));
  return NULL;
}
static void *add(void *arg) {
  (void)arg;
  for (int i = 0; i < 2000; i++) {
    CHECK(!pthread_mutex_lock(&pi));
    count++;
    CHECK(!pthread_mutex_unlock(&pi));
  }
  return NULL;
}
int main(void) {
  pthread_mutexattr_t a;
  pthread_t t[3];
  CHECK(!pthread_mutexattr_init(&a));
  CHECK(!pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
  CHECK(!pthread_mutex_init(&robust, &a));
  CHECK(!pthread_create(&t[0], NULL, die_holding, NULL) && !pthread_join(t[0], NULL));
  CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
  CHECK(!pthread_mutex_consistent(&robust) && !pthread_mutex_unlock(&robust));
  CHECK(!pthread_mutexattr_init(&a));
  CHECK(!pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT));
  CHECK(!pthread_mutex_init(&pi, &a));
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_create(&t[i], NULL, add, NULL));
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(count == 6000);
  guest_ok("th_mutex_robust_pi");
}
