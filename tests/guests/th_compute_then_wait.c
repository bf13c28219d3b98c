// build:
// deterministic
// not in clocks: plain loads decide
// Proves: a thread computes for a while and waits in a futex then; another one writes a file meanwhile, which all
// replicas confirm, while others want to run. Tests make the computing thread of a follower crash: what it had come
// past, and the leader, too, has to be seen although the leader sleeps in that futex.
#include "guest.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#define ROUNDS 40
#define WAITERS 6

static int arrived, let, ended;

static void nap(void) {
  struct timespec t = {0, 1000000};
  nanosleep(&t, NULL);
}

static void *waits(void *arg) {
  while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
    nap();
  return arg;
}

static void sleep_while(int *word, int value) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void *computes(void *sum) {
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t x = i + 1;
    __atomic_store_n(&arrived, i + 1, __ATOMIC_RELEASE);
    for (int k = 0; k < 10000000; k++)
      x = x * 6364136223846793005u + 1442695040888963407u;
    *(uint64_t *)sum += x;
    // Without a call between: this is where the leader sleeps when another thread has its turn.
    sleep_while(&let, i);
  }
  return NULL;
}

int main(void) {
  pthread_t others[WAITERS], worker;
  uint64_t sum = 0;
  FILE *file = tmpfile();
  CHECK(file);
  for (int i = 0; i < WAITERS; i++)
    CHECK(!pthread_create(&others[i], NULL, waits, NULL));
  CHECK(!pthread_create(&worker, NULL, computes, &sum));
  for (int i = 0; i < ROUNDS; i++) {
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) == i)
      nap();
    CHECK(fprintf(file, "%d\n", i) > 0 && !fflush(file));
    __atomic_store_n(&let, i + 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &let, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  }
  CHECK(!pthread_join(worker, NULL));
  __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < WAITERS; i++)
    CHECK(!pthread_join(others[i], NULL));
  CHECK(sum && !fseek(file, 0, SEEK_END) && ftell(file) > ROUNDS);
  guest_ok("th_compute_then_wait");
}
