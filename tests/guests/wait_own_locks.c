// build: -O2
// loses
// not in clocks: order decided by plain loads is not repeated there
// delayed
// Proves: locks that a program has built itself (exchange, compare, ticket) give the turn away while whoever has them
// sleeps, and a thread that does nothing but lock and unlock lets others go on, at the same count in all replicas.
#include "guest.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 12 };
static int by_exchange, by_compare, next_ticket;
static volatile int serving;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t cells[3], rounds[THREADS];
static volatile long taken;
static volatile int done;

static void lock(int which) {
  int free = 0;
  switch (which) {
  case 0:
    while (__atomic_exchange_n(&by_exchange, 1, __ATOMIC_ACQUIRE))
      ;
    return;
  case 1:
    while (!__atomic_compare_exchange_n(&by_compare, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      free = 0;
    return;
  default: {
    int mine = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_RELAXED);
    while (serving != mine)
      __asm__ volatile("pause");
  }
  }
}

static void unlock(int which) {
  if (which == 0)
    __atomic_store_n(&by_exchange, 0, __ATOMIC_RELEASE);
  else if (which == 1)
    __atomic_store_n(&by_compare, 0, __ATOMIC_RELEASE);
  else
    serving++;
}

static void *works(void *arg) {
  long who = (long)arg;
  for (int i = 0; i < ROUNDS; i++) {
    int which = (i + (int)who) % 3;
    lock(which);
    uint64_t before = cells[which];
    usleep(300);
    CHECK(cells[which] == before);
    cells[which] = guest_mix(before, rounds[who]++);
    unlock(which);
  }
  return NULL;
}

static void *locks(void *arg) {
  while (!done) {
    pthread_mutex_lock(&mutex);
    taken++;
    pthread_mutex_unlock(&mutex);
  }
  return arg;
}

int main(void) {
  pthread_t t[THREADS], l;
  for (long i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, works, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(!pthread_create(&l, NULL, locks, NULL));
  for (int i = 0; i < 3; i++) {
    usleep(2000);
    CHECK(!pthread_mutex_lock(&mutex));
    printf("taken %ld\n", taken);
    CHECK(!pthread_mutex_unlock(&mutex));
  }
  done = 1;
  CHECK(!pthread_join(l, NULL));
  for (int i = 0; i < 3; i++)
    printf("%016llx\n", (unsigned long long)cells[i]);
  guest_ok("wait_own_locks");
}
