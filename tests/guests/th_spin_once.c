// build:
// loses
// Proves: spin locks exclude and are ordered; pthread_once runs once, all
// others wait for its end.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
static pthread_spinlock_t l;
static pthread_once_t once[200];
static int ran;
static uint64_t shared;
static long count;
static void init(void) {
  ran++;
  sched_yield();
}
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1;
  for (int i = 0; i < 20000; i++) {
    pthread_spin_lock(&l);
    shared = guest_mix(shared, (uintptr_t)arg);
    count++;
    pthread_spin_unlock(&l);
    if (pthread_spin_trylock(&l) == 0) {
      shared = guest_mix(shared, 10 + (uintptr_t)arg);
      pthread_spin_unlock(&l);
    }
    guest_work(&s, 60);
    if (i % 100 == 0) // every thread does the rounds in the same order
      CHECK(!pthread_once(&once[i / 100], init));
  }
  return NULL;
}
int main(void) {
  for (int i = 0; i < 200; i++)
    once[i] = PTHREAD_ONCE_INIT;
  CHECK(!pthread_spin_init(&l, 0));
  pthread_t t[3];
  for (uintptr_t i = 0; i < 3; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(count == 60000);
  printf("shared %016llx\n", (unsigned long long)shared);
  guest_ok("th_spin_once");
}
