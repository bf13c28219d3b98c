// build:
// exit: SIGKILL
// deterministic
// loses
// Proves: a program that kills itself with SIGKILL dies of SIGKILL.
#include "guest.h"
#include <signal.h>
int main(void) {
  guest_ok("exit_kill_self");
  kill(getpid(), SIGKILL);
  for (;;)
    pause();
}
