// build: -O1 -pthread
// loses
// Proves: what a plain load has led astray in all followers, and shows only much later, outvotes no leader that is right; and a
// leader that is wrong is outvoted, wherever its other threads wait meanwhile.
// argv[1]: "memory": the followers find another value than their leader, long before it shows; "between": they do in a race that
// a replay can repeat; "leader": the leader finds a wrong one when it is about to show.
// argv[2]: for how many ms threads lock and compute in between (default 20).
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int is_over, woken, ready, ms = 20;
static volatile int flag, found;
static const char *mode = "";

// What no load of a program may find: it stands for one that finds what another thread has just stored.
static int own_number(void) { return *(volatile int *)0x2fe510000004; }

static void compute(uint64_t times) {
  for (; times; times--)
    __asm__ volatile("");
}

static uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static void pass(void) {
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
}

static void pass_for(int so_many) {
  for (uint64_t end = now_ms() + so_many; now_ms() < end;) {
    pass();
    compute(100000);
  }
}

static void *waits(void *arg) {
  struct timespec far;
  clock_gettime(CLOCK_REALTIME, &far);
  far.tv_sec += 1000;
  switch ((uintptr_t)arg) {
  case 0:
  case 1:
    pthread_mutex_lock(&lock);
    while (!is_over)
      CHECK(!(arg ? pthread_cond_timedwait(&cond, &lock, &far) : pthread_cond_wait(&cond, &lock)));
    pthread_mutex_unlock(&lock);
    break;
  case 2:
    pthread_mutex_lock(&held);
    pthread_mutex_unlock(&held);
    break;
  case 3:
    sem_wait(&sem);
    break;
  case 4:
    pthread_barrier_wait(&barrier);
    break;
  default:
    pthread_rwlock_rdlock(&rw);
    pthread_rwlock_unlock(&rw);
  }
  pthread_mutex_lock(&lock);
  woken++;
  pthread_mutex_unlock(&lock);
  return NULL;
}
#define WAYS 6

static void be_ready(void) {
  pthread_mutex_lock(&lock);
  ready++;
  pthread_mutex_unlock(&lock);
}

static int are_ready(int so_many) {
  pthread_mutex_lock(&lock);
  int r = ready >= so_many;
  pthread_mutex_unlock(&lock);
  return r;
}

// In the leader it looks late, behind what the other thread stores.
static void *looks(void *arg) {
  (void)arg;
  be_ready();
  if (own_number() == 0)
    compute(200000000);
  found = !flag;
  pass();
  return NULL;
}

static void *work(void *arg) {
  pthread_t t[WAYS], other;
  (void)arg;
  pthread_mutex_lock(&held);
  pthread_rwlock_wrlock(&rw);
  for (uintptr_t i = 0; i < WAYS; i++)
    CHECK(!pthread_create(&t[i], NULL, waits, (void *)i));
  pass_for(ms / 4);
  if (!strcmp(mode, "memory"))
    found = own_number() != 0;
  if (!strcmp(mode, "between")) {
    CHECK(!pthread_create(&other, NULL, looks, NULL));
    while (!are_ready(1))
      compute(1000);
    // (A follower's other thread has to come to its look meanwhile, and may have to wait for a core.)
    compute(20000000);
    pass();
    flag = 1;
    pass();
    CHECK(!pthread_join(other, NULL));
  }
  pass_for(ms);
  pthread_mutex_unlock(&held);
  pthread_rwlock_unlock(&rw);
  sem_post(&sem);
  pthread_barrier_wait(&barrier);
  pthread_mutex_lock(&lock);
  is_over = 1;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < WAYS; i++)
    CHECK(!pthread_join(t[i], NULL));
  pass_for(ms / 4);
  return NULL;
}

int main(int argc, char **argv) {
  mode = argc > 1 ? argv[1] : "";
  ms = argc > 2 ? atoi(argv[2]) : ms;
  pthread_barrier_init(&barrier, NULL, 2);
  sem_init(&sem, 0, 0);
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, work, NULL));
  CHECK(!pthread_join(t, NULL));
  if (!strcmp(mode, "leader"))
    found = own_number() == 0;
  printf("%d woken, astray: %d\n", woken, found);
  guest_ok("race_latent");
}
