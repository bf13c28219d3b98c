// build: -pthread -O2
// varies
// loses
// Proves: what threads read of a volatile word that another one stores is the same in every replica, also where no loop waits for
// it and no branch asks for it at once (memcached's clock).
#include "guest.h"
#include <pthread.h>
#define THREADS 3

static volatile unsigned now = 1;
static volatile int ends;
static pthread_mutex_t lock[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static unsigned taken[2];

static void *tick(void *unused) {
  (void)unused;
  for (int i = 0; i < 400 && !ends; i++) {
    struct timespec nap = {0, 50000};
    nanosleep(&nap, NULL);
    now = now + 1;
  }
  return NULL;
}

struct item {
  unsigned made, used;
};

// Looks twice in one go, as compilers let nobody do with what is not volatile.
__attribute__((noinline)) static unsigned age(struct item *item, unsigned limit) {
  unsigned idle = now - item->used;
  unsigned made = now - item->made;
  return idle > limit ? idle : made;
}

__attribute__((noinline)) static void touch(struct item *item) { item->used = now; }

static void *serve(void *arg) {
  struct item item = {now, now};
  uint64_t seed = (uintptr_t)arg + 1;
  for (int i = 0; i < 3000; i++) {
    for (unsigned k = guest_rand(&seed) % 500; k; k--)
      guest_rand(&seed);
    // Who is of odd age takes another lock.
    unsigned of = age(&item, 3) % 2;
    pthread_mutex_lock(&lock[of]);
    taken[of]++;
    pthread_mutex_unlock(&lock[of]);
    if (i % 7 == 0)
      touch(&item);
  }
  return NULL;
}

int main(void) {
  pthread_t clock, t[THREADS];
  CHECK(pthread_create(&clock, NULL, tick, NULL) == 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, serve, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  ends = 1;
  CHECK(pthread_join(clock, NULL) == 0);
  printf("%u of odd age, %u of even age\n", taken[1], taken[0]);
  guest_ok("load_volatile");
}
