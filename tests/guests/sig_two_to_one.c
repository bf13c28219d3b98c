// build: -pthread
// deterministic
// loses
// Proves: two signals that are sent to one thread at nearly the same time run
// their handlers in the same order in every replica, also when the kernel takes
// the one that was sent later first.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

enum { ROUNDS = 400 };
static volatile sig_atomic_t low, high;
static atomic_int over, begun;
static uint64_t order;

static void on_signal(int n) {
  order = guest_mix(order, (uint64_t)n);
  if (n == SIGUSR1)
    low++;
  else
    high++;
}

static void *work(void *unused) {
  atomic_exchange(&begun, 1);
  // (A plain load, also one that seeds a compare, would be a race in clocks order.)
  while (!atomic_fetch_add(&over, 0))
    sched_yield();
  return unused;
}

int main(void) {
  struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGUSR1, &a, 0) == 0);
  CHECK(sigaction(SIGUSR2, &a, 0) == 0);
  pthread_t t;
  CHECK(pthread_create(&t, 0, work, 0) == 0);
  while (!atomic_fetch_add(&begun, 0))
    usleep(100);
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(pthread_kill(t, SIGUSR2) == 0);
    CHECK(pthread_kill(t, SIGUSR1) == 0);
    if (i % 8 == 0)
      usleep(50);
  }
  usleep(1000);
  atomic_exchange(&over, 1);
  CHECK(pthread_join(t, 0) == 0);
  CHECK(low > 0 && high > 0);
  // To where the replicas are compared, and nobody reads it.
  FILE *f = fopen("/dev/null", "w");
  CHECK(f);
  fprintf(f, "%016llx\n", (unsigned long long)order);
  CHECK(fclose(f) == 0);
  guest_ok("sig_two_to_one");
}
