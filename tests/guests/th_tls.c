// build:
// deterministic
// loses
// Proves: thread-local variables, keys and their destructors, errno.
#include "guest.h"
#include <pthread.h>
static __thread int mine = 5;
static __thread char big[10000];
static pthread_key_t key;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long destroyed;
static void destroy(void *v) {
  pthread_mutex_lock(&m);
  destroyed += (long)v;
  pthread_mutex_unlock(&m);
}
static void *body(void *arg) {
  CHECK(mine == 5 && big[9999] == 0);
  mine += (int)(intptr_t)arg;
  big[9999] = 1;
  CHECK(!pthread_setspecific(key, arg));
  CHECK(close(-1) == -1 && errno == EBADF);
  CHECK(pthread_getspecific(key) == arg && mine == 5 + (int)(intptr_t)arg);
  return NULL;
}
int main(void) {
  CHECK(!pthread_key_create(&key, destroy));
  pthread_t t[20];
  errno = 0;
  for (intptr_t i = 0; i < 20; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)(i + 1)));
  for (int i = 0; i < 20; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(destroyed == 210 && mine == 5 && errno == 0);
  guest_ok("th_tls");
}
