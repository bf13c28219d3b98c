// build:
// descends
// loses
// Proves: a bounded queue with broadcast: who gets which item is printed by
// each consumer; every item arrives once.
#include "guest.h"
#include <pthread.h>
#define ITEMS 4000
#define ROOM 8
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int queue[ROOM], head, tail, made, eaten;
static long sum;
static void *produce(void *arg) {
  (void)arg;
  for (;;) {
    pthread_mutex_lock(&m);
    while (made < ITEMS && head - tail == ROOM)
      pthread_cond_wait(&c, &m);
    if (made == ITEMS) {
      pthread_mutex_unlock(&m);
      return NULL;
    }
    queue[head++ % ROOM] = ++made;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
  }
}
static void *consume(void *arg) {
  uint64_t h = 0;
  long n = 0;
  (void)arg;
  for (;;) {
    pthread_mutex_lock(&m);
    while (head == tail && eaten < ITEMS)
      pthread_cond_wait(&c, &m);
    if (eaten == ITEMS) {
      pthread_mutex_unlock(&m);
      break;
    }
    int v = queue[tail++ % ROOM];
    eaten++;
    sum += v;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    h = guest_mix(h, v);
    n++;
  }
  printf("took %ld, %016llx\n", n, (unsigned long long)h);
  return NULL;
}
int main(void) {
  pthread_t t[6];
  for (int i = 0; i < 6; i++)
    CHECK(!pthread_create(&t[i], NULL, i < 2 ? produce : consume, NULL));
  for (int i = 0; i < 6; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(sum == (long)ITEMS * (ITEMS + 1) / 2);
  guest_ok("th_cond_broadcast");
}
