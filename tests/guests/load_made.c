// build: -pthread -O2
// varies
// loses
// Proves: who asks whether a word, or one of an array, has been made yet, and makes it, does so in every replica or in none (git's
// threads ask so whether the output is a terminal).
#include "guest.h"
#include <pthread.h>
#define THREADS 3
#define CELLS 4000

static int cell[CELLS];
static int last = -1;
static unsigned made, by[THREADS];
static __thread unsigned me;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;

__attribute__((noinline)) static int make(int i) {
  pthread_mutex_lock(&lock);
  made++;
  by[me]++;
  pthread_mutex_unlock(&lock);
  return i * 7 + 1;
}

__attribute__((noinline)) static int of_array(int i) {
  if (cell[i] < 0)
    cell[i] = make(i);
  return cell[i];
}

__attribute__((noinline)) static int of_word(int i) {
  if (last < 0)
    last = make(i);
  return last;
}

static void *work(void *arg) {
  unsigned sum = 0;
  uint64_t seed = me = (uintptr_t)arg;
  // (Else the first one is done before the last one is there, on a busy machine.)
  pthread_barrier_wait(&start);
  for (int i = 0; i < CELLS; i++) {
    if (guest_rand(&seed) % 8 == 0)
      sched_yield();
    sum += of_array(i) + of_word(i);
  }
  return (void *)(uintptr_t)sum;
}

int main(void) {
  pthread_t t[THREADS];
  for (int i = 0; i < CELLS; i++)
    cell[i] = -1;
  CHECK(pthread_barrier_init(&start, NULL, THREADS) == 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  CHECK(made >= CELLS);
  printf("%u made: %u %u %u\n", made, by[0], by[1], by[2]);
  guest_ok("load_made");
}
