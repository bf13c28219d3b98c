// build:
// descends
// loses
// Proves: readers and writers, both preferences, try and timed forms; what the
// readers saw is printed.
#include "guest.h"
#include <pthread.h>
#include <time.h>
static pthread_rwlock_t l[2];
static uint64_t value[2];
static void *writer(void *arg) {
  uint64_t s = (uintptr_t)arg + 1;
  for (int i = 0; i < 1500; i++)
    for (int k = 0; k < 2; k++) {
      CHECK(!pthread_rwlock_wrlock(&l[k]));
      value[k] = guest_mix(value[k], (uintptr_t)arg);
      CHECK(!pthread_rwlock_unlock(&l[k]));
      guest_work(&s, 200);
    }
  return NULL;
}
static void *reader(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  for (int i = 0; i < 1500; i++)
    for (int k = 0; k < 2; k++) {
      struct timespec ts = {0, 0};
      int r = i % 3 == 0   ? pthread_rwlock_rdlock(&l[k])
              : i % 3 == 1 ? pthread_rwlock_tryrdlock(&l[k])
                           : pthread_rwlock_timedrdlock(&l[k], &ts);
      CHECK(r == 0 || (i % 3 == 1 && r == EBUSY) || (i % 3 == 2 && r == ETIMEDOUT));
      if (r == 0) {
        h = guest_mix(h, value[k]);
        CHECK(!pthread_rwlock_unlock(&l[k]));
      } else {
        h = guest_mix(h, i);
      }
      guest_work(&s, 200);
    }
  printf("reader %lu saw %016llx\n", (unsigned long)(uintptr_t)arg,
         (unsigned long long)h);
  return NULL;
}
int main(void) {
  pthread_rwlockattr_t a;
  CHECK(!pthread_rwlockattr_init(&a) && !pthread_rwlock_init(&l[0], NULL));
  CHECK(!pthread_rwlockattr_setkind_np(&a, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
  CHECK(!pthread_rwlock_init(&l[1], &a));
  pthread_t t[5];
  for (uintptr_t i = 0; i < 5; i++)
    CHECK(!pthread_create(&t[i], NULL, i < 2 ? writer : reader, (void *)i));
  for (int i = 0; i < 5; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(!pthread_rwlock_wrlock(&l[0]));
  CHECK(pthread_rwlock_trywrlock(&l[0]) == EBUSY);
  CHECK(pthread_rwlock_tryrdlock(&l[0]) == EBUSY);
  CHECK(!pthread_rwlock_unlock(&l[0]));
  printf("values %016llx %016llx\n", (unsigned long long)value[0],
         (unsigned long long)value[1]);
  guest_ok("th_rwlock");
}
