// build:
// deterministic
// descends
// loses
// Proves: nothing is lost while one thread waits for another's end and one for a condition, whatever happens to replicas
// meanwhile. argv[1]: for how many milliseconds (default 50).
#include "guest.h"
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int is_over, rounds;

static void *waits(void *arg) {
  pthread_mutex_lock(&lock);
  while (!is_over)
    pthread_cond_wait(&over, &lock);
  rounds *= 2;
  pthread_mutex_unlock(&lock);
  return arg;
}

static void *naps(void *arg) {
  long left = (long)(intptr_t)arg;
  struct timespec t = {0, 10000000};
  for (; left > 0; left -= 10) {
    CHECK(nanosleep(&t, NULL) == 0);
    pthread_mutex_lock(&lock);
    rounds++;
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  is_over = 1;
  pthread_cond_broadcast(&over);
  pthread_mutex_unlock(&lock);
  return arg;
}

int main(int argc, char **argv) {
  long ms = argc > 1 ? atol(argv[1]) : 50;
  pthread_t t[2];
  CHECK(!pthread_create(&t[0], NULL, waits, NULL));
  CHECK(!pthread_create(&t[1], NULL, naps, (void *)(intptr_t)ms));
  CHECK(!pthread_join(t[0], NULL) && !pthread_join(t[1], NULL));
  printf("%d rounds\n", rounds);
  guest_ok("recover_joined");
}
