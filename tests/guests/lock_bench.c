// build:
// args: 2 200000
// deterministic
// loses
// ascends
// Proves: T threads (argv[1], default 2) lock, increment, unlock N times each
// (argv[2], default 5 million): the benchmark of the lock path.
#include "guest.h"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long count, rounds = 5000000;
static void *body(void *arg) {
  for (long i = 0; i < rounds; i++) {
    pthread_mutex_lock(&m);
    count++;
    pthread_mutex_unlock(&m);
  }
  return arg;
}
int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 2;
  if (argc > 2)
    rounds = atol(argv[2]);
  CHECK(threads > 0 && threads <= 64);
  pthread_t t[64];
  for (int i = 0; i < threads; i++)
    CHECK(!pthread_create(&t[i], NULL, body, NULL));
  for (int i = 0; i < threads; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(count == threads * rounds);
  printf("count %ld\n", count);
  guest_ok("lock_bench");
}
