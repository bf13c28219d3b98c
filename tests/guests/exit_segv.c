// build:
// exit: SIGSEGV
// deterministic
// loses
// Proves: death by SIGSEGV in all replicas is the program's own death.
#include "guest.h"
int main(void) {
  guest_ok("exit_segv");
  volatile uintptr_t nowhere = 8;
  *(volatile int *)nowhere = 1;
}
