// build:
// deterministic
// loses
// Proves: normal, recursive, error-checking and adaptive mutexes keep their
// rules and exclude each other's threads.
#include "guest.h"
#include <pthread.h>
#define KINDS 4
static pthread_mutex_t m[KINDS];
static long count[KINDS];
static void *body(void *arg) {
  (void)arg;
  for (int i = 0; i < 3000; i++)
    for (int k = 0; k < KINDS; k++) {
      CHECK(!pthread_mutex_lock(&m[k]));
      if (k == 1)
        CHECK(!pthread_mutex_lock(&m[k]) && !pthread_mutex_trylock(&m[k]));
      if (k == 2)
        CHECK(pthread_mutex_lock(&m[k]) == EDEADLK);
      count[k]++;
      if (k == 1)
        CHECK(!pthread_mutex_unlock(&m[k]) && !pthread_mutex_unlock(&m[k]));
      CHECK(!pthread_mutex_unlock(&m[k]));
    }
  return NULL;
}
int main(void) {
  int kind[KINDS] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                     PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
  pthread_mutexattr_t a;
  CHECK(!pthread_mutexattr_init(&a));
  for (int k = 0; k < KINDS; k++) {
    CHECK(!pthread_mutexattr_settype(&a, kind[k]));
    CHECK(!pthread_mutex_init(&m[k], &a));
  }
  pthread_t t[4];
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, NULL));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(pthread_mutex_unlock(&m[2]) == EPERM);
  CHECK(pthread_mutex_trylock(&m[0]) == 0 && pthread_mutex_trylock(&m[0]) == EBUSY);
  CHECK(!pthread_mutex_unlock(&m[0]));
  for (int k = 0; k < KINDS; k++)
    CHECK(count[k] == 12000 && !pthread_mutex_destroy(&m[k]));
  guest_ok("th_mutex_types");
}
