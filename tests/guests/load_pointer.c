// build: -pthread -O2
// varies
// loses
// Proves: who calls through a pointer at a fixed place, which the first one makes that comes (Rust's memchr finds out so what the
// processor is best at), makes it in every replica or in none.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#define THREADS 3
#define ROUNDS 400

typedef unsigned (*function)(unsigned);
static unsigned made, by[THREADS];
static __thread unsigned me;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;

static void find_out(void) {
  pthread_mutex_lock(&lock);
  made++;
  by[me]++;
  pthread_mutex_unlock(&lock);
}

// One pointer, who finds out, and who is best.
#define POINTER(n)                                                                                 \
  static unsigned find##n(unsigned x);                                                             \
  static function pointer##n = find##n;                                                            \
  static unsigned best##n(unsigned x) { return x * 7 + n; }                                        \
  __attribute__((noinline)) static unsigned find##n(unsigned x) {                                  \
    find_out();                                                                                    \
    __atomic_store_n(&pointer##n, best##n, __ATOMIC_RELAXED);                                      \
    return best##n(x);                                                                             \
  }                                                                                                \
  __attribute__((noinline)) static unsigned call##n(unsigned x) {                                  \
    function f = __atomic_load_n(&pointer##n, __ATOMIC_RELAXED);                                   \
    __asm__("" : "+r"(f));                                                                         \
    return f(x) + 1;                                                                               \
  }                                                                                                \
  static void again##n(void) { __atomic_store_n(&pointer##n, find##n, __ATOMIC_RELAXED); }

POINTER(1)
POINTER(2)
POINTER(3)
POINTER(4)

static void *work(void *arg) {
  unsigned sum = 0;
  uint64_t seed = me = (uintptr_t)arg;
  for (unsigned i = 0; i < ROUNDS; i++) {
    // (Else the first one is done before the last one is there, on a busy machine.)
    if (pthread_barrier_wait(&start) == PTHREAD_BARRIER_SERIAL_THREAD) {
      again1();
      again2();
      again3();
      again4();
    }
    pthread_barrier_wait(&start);
    if (guest_rand(&seed) % 8 == 0)
      sched_yield();
    sum += call1(i) + call2(i) + call3(i) + call4(i);
  }
  return (void *)(uintptr_t)sum;
}

int main(void) {
  pthread_t t[THREADS];
  CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
  for (unsigned i = 0, all = 0; i < THREADS; i++) {
    void *sum;
    CHECK(pthread_join(t[i], &sum) == 0);
    CHECK(i == 0 || all == (unsigned)(uintptr_t)sum);
    all = (unsigned)(uintptr_t)sum;
  }
  printf("made %u times: %u %u %u\n", made, by[0], by[1], by[2]);
  guest_ok("load_pointer");
}
