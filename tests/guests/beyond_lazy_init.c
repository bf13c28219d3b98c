// build:
// beyond
// Proves: double-checked initialisation by a plain flag before a mutex is
// right or stopped with a report.
#include "guest.h"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile int ready[500];
static uint64_t order;
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1;
  for (int i = 0; i < 500; i++) {
    if (!ready[i]) {
      pthread_mutex_lock(&m);
      if (!ready[i]) {
        order = guest_mix(order, (uintptr_t)arg);
        ready[i] = 1;
      }
      pthread_mutex_unlock(&m);
    }
    guest_work(&s, 300);
  }
  return NULL;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("order %016llx\n", (unsigned long long)order);
  guest_ok("beyond_lazy_init");
}
