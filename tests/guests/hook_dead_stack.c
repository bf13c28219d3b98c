// build: -pthread -O1 -mno-red-zone
// varies
// loses
// not in code: what lies on the stack are addresses
// not in data: what lies on the stack are addresses
// Proves: what a function leaves on the stack below is the same in every replica, whoever has run the C library's own code:
// programs pass on what they never wrote, and exchange it for its first value. (One thread does it: where several contend for a lock,
// traces still differ.)
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>
enum { THREADS = 1, FUNCTIONS = 16, BELOW = 64, BYTES = 8192 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t sem;
static volatile int is_over;
static uint64_t left[THREADS][FUNCTIONS];

__attribute__((noinline)) static void clean(void) {
  volatile char all[BYTES + 4096];
  for (unsigned i = 0; i < sizeof all; i++)
    all[i] = 1;
}
__attribute__((noinline)) static uint64_t look(void) {
  volatile char here = 0;
  uintptr_t at = ((uintptr_t)&here + (uintptr_t)here) & ~7ul;
  uint64_t h = 0;
  for (unsigned i = BELOW; i < BYTES; i += 8)
    h = guest_mix(h, *(volatile uint64_t *)(at - i));
  return h;
}
static void nothing(void) {}
#define AFTER(i, call)                                                                             \
  clean();                                                                                         \
  call;                                                                                            \
  left[me][i] = look();

static void *work(void *arg) {
  int me = (int)(uintptr_t)arg;
  struct timespec past = {1, 0};
  AFTER(0, pthread_mutex_lock(&lock))
  AFTER(1, pthread_mutex_unlock(&lock))
  AFTER(2, pthread_cond_signal(&changed))
  AFTER(3, pthread_cond_broadcast(&changed))
  AFTER(4, sem_post(&sem))
  AFTER(5, sem_wait(&sem))
  AFTER(6, pthread_rwlock_rdlock(&rwlock))
  AFTER(7, pthread_rwlock_unlock(&rwlock))
  AFTER(8, pthread_spin_lock(&spin))
  AFTER(9, pthread_spin_unlock(&spin))
  AFTER(10, pthread_once(&once, nothing))
  AFTER(11, pthread_barrier_wait(&barrier))
  pthread_mutex_lock(&lock);
  while (!is_over) {
    AFTER(12, pthread_cond_wait(&changed, &lock))
  }
  AFTER(13, pthread_cond_timedwait(&changed, &lock, &past))
  pthread_mutex_unlock(&lock);
  int taken;
  AFTER(14, taken = pthread_mutex_trylock(&lock))
  if (taken == 0)
    pthread_mutex_unlock(&lock);
  AFTER(15, usleep(10))
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0 && sem_init(&sem, 0, 0) == 0);
  CHECK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
  usleep(20000);
  pthread_mutex_lock(&lock);
  is_over = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  for (int i = 0; i < FUNCTIONS; i++)
    printf("%2d: %016llx\n", i, (unsigned long long)left[0][i]);
  guest_ok("hook_dead_stack");
}
