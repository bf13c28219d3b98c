// build: -O2
// loses
// not in clocks: order decided by plain loads is not repeated there
// delayed
// Proves: workers count their turns until a plain flag stops them that they poll with pause, and the counts, which
// are others in each run, are the same in all replicas: polls that see nothing new are part of the order.
#include "guest.h"
#include <pthread.h>
#include <time.h>

enum { WORKERS = 3, ROUNDS = 20 };
static volatile int stop;
static uint64_t counts[WORKERS];

static void *work(void *arg) {
  uint64_t n = 0;
  while (!stop) {
    n++;
    __builtin_ia32_pause();
  }
  counts[(long)arg] = n;
  return arg;
}

int main(void) {
  uint64_t signature = 1;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t t[WORKERS];
    stop = 0;
    for (long i = 0; i < WORKERS; i++)
      CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
    CHECK(!nanosleep(&(struct timespec){0, 200000}, NULL));
    stop = 1;
    for (int i = 0; i < WORKERS; i++) {
      CHECK(!pthread_join(t[i], NULL));
      signature = guest_mix(signature, counts[i]);
    }
  }
  printf("signature %016llx\n", (unsigned long long)signature);
  guest_ok("wait_stop_flag");
}
