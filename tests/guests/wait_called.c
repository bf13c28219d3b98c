// build: -O2
// loses
// not in clocks: order decided by plain loads is not repeated there
// delayed
// Proves: a thread that waits by calling a function which looks, one that only pauses, and one whose loop does other
// things besides give the turn to the thread that they wait for.
#include "guest.h"
#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 60 };
static volatile int ready;
static volatile uint64_t value;

__attribute__((noinline)) static int is_ready(volatile int *r) {
  return *r;
}

static void *stores(void *arg) {
  for (int i = 0; i < 3 * ROUNDS; i++) {
    while (is_ready(&ready))
      __builtin_ia32_pause();
    value = guest_mix(value, i);
    if (i % 16 == 0)
      usleep(100);
    ready = 1;
  }
  return arg;
}

int main(void) {
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, stores, NULL));
  uint64_t h = 0, polls = 0;
  static volatile uint64_t others[32];
  for (int i = 0; i < 3 * ROUNDS; i++) {
    switch (i % 3) {
    case 0:
      while (!is_ready(&ready))
        polls++;
      break;
    case 1:
      while (!is_ready(&ready))
        __builtin_ia32_pause();
      break;
    default:
      for (int k = 0; !is_ready(&ready); k++) {
        others[k % 32] += k;
        __builtin_ia32_pause();
      }
    }
    h = guest_mix(h, value);
    ready = 0;
  }
  CHECK(!pthread_join(t, NULL));
  printf("%016llx, %llu polls\n", (unsigned long long)h, (unsigned long long)polls);
  guest_ok("wait_called");
}
