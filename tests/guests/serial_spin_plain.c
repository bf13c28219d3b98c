// build:
// deterministic
// loses
// not in clocks: order decided by plain loads is not repeated there
// Proves: in serial order a thread that spins on a plain word gives its turn to the one that is to store it,
// with and without pause.
#include "guest.h"
#include <pthread.h>
static volatile int turn, with_pause;
static void await(int who) {
  while (turn != who)
    if (with_pause)
      __asm__ volatile("pause");
}
static void *odd(void *arg) {
  for (int i = 0; i < 20; i++) {
    await(1);
    turn = 0;
  }
  return arg;
}
int main(void) {
  for (with_pause = 0; with_pause < 2; with_pause++) {
    pthread_t t;
    CHECK(pthread_create(&t, NULL, odd, NULL) == 0);
    for (int i = 0; i < 20; i++) {
      turn = 1;
      await(0);
    }
    CHECK(pthread_join(t, NULL) == 0);
    printf("pause %d\n", with_pause);
  }
  guest_ok("serial_spin_plain");
}
