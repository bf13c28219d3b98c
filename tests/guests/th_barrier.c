// build:
// loses
// Proves: barriers of four threads, many rounds; which thread is the serial
// one is printed as a hash.
#include "guest.h"
#include <pthread.h>
#define THREADS 4
#define ROUNDS 1000
static pthread_barrier_t b;
static int slot[THREADS], serials[THREADS];
static uint64_t h;
static void *body(void *arg) {
  uintptr_t me = (uintptr_t)arg;
  uint64_t s = me + 1;
  for (int i = 0; i < ROUNDS; i++) {
    slot[me] = i;
    guest_work(&s, 300);
    int r = pthread_barrier_wait(&b);
    CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
    for (int k = 0; k < THREADS; k++)
      CHECK(slot[k] == i);
    if (r == PTHREAD_BARRIER_SERIAL_THREAD) {
      serials[me]++;
      h = guest_mix(h, me);
    }
    pthread_barrier_wait(&b);
  }
  return NULL;
}
int main(void) {
  CHECK(!pthread_barrier_init(&b, NULL, THREADS));
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  int sum = 0;
  for (int i = 0; i < THREADS; i++) {
    CHECK(!pthread_join(t[i], NULL));
    sum += serials[i];
  }
  CHECK(sum == ROUNDS && !pthread_barrier_destroy(&b));
  printf("serial %016llx\n", (unsigned long long)h);
  guest_ok("th_barrier");
}
