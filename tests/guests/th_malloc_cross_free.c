// build:
// not in data: what it prints are addresses, or is made of them
// varies
// loses
// Proves: blocks allocated in one thread and freed in another: arena locks and
// tcache decide addresses; each thread's address hash is printed.
#include "guest.h"
#include <pthread.h>
#define SLOTS 64
static void *slot[SLOTS];
static pthread_mutex_t lock[SLOTS];
static void *body(void *arg) {
  uint64_t s = ((uintptr_t)arg + 1) * 77, h = 0;
  for (int i = 0; i < 30000; i++) {
    int k = guest_rand(&s) % SLOTS;
    void *p = malloc(16 + guest_rand(&s) % (i % 50 ? 600 : 20000)), *old;
    CHECK(p);
    h = guest_mix(h, (uintptr_t)p);
    pthread_mutex_lock(&lock[k]);
    old = slot[k];
    slot[k] = p;
    pthread_mutex_unlock(&lock[k]);
    free(old);
  }
  return (void *)h;
}
int main(void) {
  pthread_t t[4];
  for (int i = 0; i < SLOTS; i++)
    pthread_mutex_init(&lock[i], NULL);
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    printf("%016llx\n", (unsigned long long)(uintptr_t)r);
  }
  guest_ok("th_malloc_cross_free");
}
