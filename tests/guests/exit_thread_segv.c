// build:
// exit: SIGSEGV
// deterministic
// loses
// Proves: a fault in a thread ends the whole program by SIGSEGV.
#include "guest.h"
#include <pthread.h>
static void *die(void *arg) {
  (void)arg;
  volatile uintptr_t nowhere = 8;
  *(volatile int *)nowhere = 1;
  return NULL;
}
int main(void) {
  guest_ok("exit_thread_segv");
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, die, NULL));
  pthread_join(t, NULL);
}
