// build:
// send: SIGQUIT
// exit: SIGQUIT
// deterministic
// loses
// Proves: SIGQUIT sent to the run, without a handler, ends it by that signal.
#include "guest.h"
int main(void) {
  guest_ok("ext_sigquit_default");
  puts("READY");
  fflush(stdout);
  for (;;)
    pause();
}
