// build:
// descends
// loses
// Proves: unnamed semaphores: wait, trywait, timedwait, getvalue;
// outcomes under contention are printed.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
static sem_t two, lock;
static uint64_t shared;
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  for (int i = 0; i < 3000; i++) {
    int r;
    if (i % 3 == 0) {
      while ((r = sem_wait(&two)) != 0)
        CHECK(errno == EINTR);
    } else if (i % 3 == 1) {
      r = sem_trywait(&two);
      CHECK(r == 0 || errno == EAGAIN);
    } else {
      struct timespec ts = {0, 0};
      r = sem_timedwait(&two, &ts);
      CHECK(r == 0 || errno == ETIMEDOUT);
    }
    if (r == 0) {
      CHECK(!sem_wait(&lock));
      shared = guest_mix(shared, (uintptr_t)arg);
      CHECK(!sem_post(&lock));
      guest_work(&s, 300);
      CHECK(!sem_post(&two));
    } else {
      h = guest_mix(h, i);
    }
    guest_work(&s, 200);
  }
  return (void *)h;
}
int main(void) {
  CHECK(!sem_init(&two, 0, 2) && !sem_init(&lock, 0, 1));
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    printf("%016llx\n", (unsigned long long)(uintptr_t)r);
  }
  int v;
  CHECK(!sem_getvalue(&two, &v) && v == 2);
  printf("shared %016llx\n", (unsigned long long)shared);
  guest_ok("th_semaphore");
}
