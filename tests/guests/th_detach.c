// build:
// deterministic
// loses
// Proves: detached threads (both ways) come to their end; a condition variable
// counts them.
#include "guest.h"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int done;
static void *body(void *arg) {
  if (arg)
    CHECK(!pthread_detach(pthread_self()));
  pthread_mutex_lock(&m);
  done++;
  pthread_cond_signal(&c);
  pthread_mutex_unlock(&m);
  return NULL;
}
int main(void) {
  pthread_attr_t a;
  CHECK(!pthread_attr_init(&a));
  CHECK(!pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED));
  for (int i = 0; i < 100; i++) {
    pthread_t t;
    if (i & 1)
      CHECK(!pthread_create(&t, NULL, body, (void *)1));
    else
      CHECK(!pthread_create(&t, &a, body, NULL));
  }
  pthread_mutex_lock(&m);
  while (done < 100)
    pthread_cond_wait(&c, &m);
  pthread_mutex_unlock(&m);
  guest_ok("th_detach");
}
