// build: -pthread -O2
// deterministic
// loses
// Proves: a mutex that is taken out of order (geryon.h) excludes threads from one another all the same, in every replica, also from
// those that take it in order (trylock); others stay in order beside it.
#include "../../include/geryon.h"
#include "guest.h"
#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 4000 };

static pthread_mutex_t counted = PTHREAD_MUTEX_INITIALIZER, ordered = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static long count, running = THREADS;
static uint64_t sum;

static void *work(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_mutex_lock(&counted);
    long now = count;
    guest_rand(&seed);
    count = now + 1;
    pthread_mutex_unlock(&counted);
    if (i % 16 == 0) {
      pthread_mutex_lock(&ordered);
      sum += i;
      pthread_mutex_unlock(&ordered);
    }
    if (i % 512 == 0)
      sched_yield();
  }
  while (pthread_mutex_trylock(&counted) != 0)
    sched_yield();
  count++;
  pthread_mutex_unlock(&counted);
  pthread_mutex_lock(&ordered);
  running--;
  pthread_cond_signal(&ended);
  pthread_mutex_unlock(&ordered);
  return NULL;
}

int main(void) {
  pthread_mutexattr_t a;
  pthread_mutex_t recursive;
  CHECK(!pthread_mutexattr_init(&a) && !pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE));
  CHECK(!pthread_mutex_init(&recursive, &a));
  CHECK(geryon_relax(&recursive) == (geryon_is_here() ? EINVAL : 0));
  CHECK(geryon_relax(&counted) == 0);
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  pthread_mutex_lock(&ordered);
  while (running > 0)
    pthread_cond_wait(&ended, &ordered);
  pthread_mutex_unlock(&ordered);
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(count == (long)THREADS * (ROUNDS + 1));
  printf("%ld %llu\n", count, (unsigned long long)sum);
  guest_ok("lock_relaxed");
}
