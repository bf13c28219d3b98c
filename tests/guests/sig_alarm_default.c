// build:
// exit: SIGALRM
// deterministic
// loses
// Proves: an unhandled SIGALRM ends the program by that signal.
#include "guest.h"
#include <signal.h>
int main(void) {
  guest_ok("sig_alarm_default");
  CHECK(alarm(1) == 0);
  for (;;)
    pause();
}
