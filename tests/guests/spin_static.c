// build: -static -pthread -O2
// loses
// not in code: it is linked for a fixed address, which is said
// not in data: it is linked for a fixed address, which is said
// Proves: a static program whose threads use spin locks, and never ask for one only: it has no pthread_spin_trylock.
#include "guest.h"
#include <pthread.h>
#define THREADS 3
#define ROUNDS 20000
static pthread_spinlock_t lock;
static unsigned long count;
static void *work(void *arg) {
  for (int i = 0; i < ROUNDS; i++) {
    pthread_spin_lock(&lock);
    count++;
    pthread_spin_unlock(&lock);
  }
  return arg;
}
int main(void) {
  pthread_t threads[THREADS];
  CHECK(pthread_spin_init(&lock, 0) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(count == (unsigned long)THREADS * ROUNDS);
  guest_ok("spin_static");
  return 0;
}
