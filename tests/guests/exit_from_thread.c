// build:
// not in serial: its threads spin, and one that spins keeps the turn
// exit: 12
// deterministic
// loses
// Proves: exit() in a thread ends the program while others block and compute.
#include "guest.h"
#include <pthread.h>
static void *busy(void *arg) {
  if (arg)
    pause();
  for (;;)
    __asm__ volatile("");
  return NULL;
}
static void *leave(void *arg) {
  (void)arg;
  usleep(10000);
  guest_ok("exit_from_thread");
  exit(12);
}
int main(void) {
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, busy, NULL));
  CHECK(!pthread_create(&t, NULL, busy, (void *)1));
  CHECK(!pthread_create(&t, NULL, leave, NULL));
  pthread_join(t, NULL);
}
