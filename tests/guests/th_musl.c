// build: -pthread -O2
// cc: musl-gcc
// args: 4 400
// args: 8 100
// varies
// loses
// ascends
// not in clocks: what musl asks by plain loads is not ordered
// Proves: threads of a program that has musl for its C library, which has other structures under the names of glibc's: mutexes,
// conditions, semaphores, read-write locks, pthread_once, joins.
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t guarded = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t room;
static uint64_t order, shared;
static int threads, rounds, turn, begun;

static void begin(void) { begun++; }

static void *body(void *arg) {
  uintptr_t me = (uintptr_t)arg;
  for (int i = 0; i < rounds; i++) {
    CHECK(!pthread_once(&once, begin));
    CHECK(!sem_wait(&room));
    CHECK(!pthread_mutex_lock(&mutex));
    order = guest_mix(order, me);
    CHECK(!pthread_mutex_unlock(&mutex));
    CHECK(!sem_post(&room));
    if (i % 8 == 0) {
      CHECK(!pthread_rwlock_wrlock(&guarded));
      shared += me + 1;
    } else if (pthread_rwlock_tryrdlock(&guarded)) {
      continue;
    }
    CHECK(!pthread_rwlock_unlock(&guarded));
  }
  CHECK(!pthread_mutex_lock(&mutex));
  while (turn != (int)me)
    CHECK(!pthread_cond_wait(&turned, &mutex));
  turn++;
  CHECK(!pthread_cond_broadcast(&turned));
  CHECK(!pthread_mutex_unlock(&mutex));
  return (void *)(me * me);
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  threads = atoi(argv[1]), rounds = atoi(argv[2]);
  CHECK(threads <= 16 && !sem_init(&room, 0, 2));
  pthread_t t[16];
  for (uintptr_t i = 0; i < (uintptr_t)threads; i++)
    CHECK(!pthread_create(&t[i], 0, body, (void *)i));
  for (uintptr_t i = 0; i < (uintptr_t)threads; i++) {
    void *result;
    CHECK(!pthread_join(t[i], &result) && (uintptr_t)result == i * i);
  }
  CHECK(begun == 1 && turn == threads);
  printf("order %016llx, shared %llu\n", (unsigned long long)order, (unsigned long long)shared);
  guest_ok("th_musl");
}
