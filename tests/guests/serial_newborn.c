// build:
// varies
// loses
// not in clocks: nothing in the code shows there that the loop waits
// Proves: a thread that counts in memory while it waits for one that has not begun is interrupted at the same count
// everywhere. (The other one's registers are those of the call that made it, and name no buffer of a call's.)
#include "guest.h"
#include <pthread.h>

static volatile int stored;

static void *count(void *to) {
  unsigned long *rounds = to;
  while (!stored) {
    ++*rounds;
    __asm__ volatile("" ::: "memory");
  }
  return NULL;
}

static void *store(void *arg) {
  stored = 1;
  return arg;
}

int main(void) {
  for (int i = 0; i < 4; i++) {
    unsigned long rounds = 0;
    stored = 0;
    pthread_t first, second;
    CHECK(!pthread_create(&first, NULL, i % 2 ? count : store, &rounds));
    CHECK(!pthread_create(&second, NULL, i % 2 ? store : count, &rounds));
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    printf("%lu rounds\n", rounds);
  }
  guest_ok("serial_newborn");
}
