// build:
// send: SIGTERM
// exit: SIGTERM
// deterministic
// loses
// Proves: SIGTERM sent to the run, without a handler, ends it by that signal.
#include "guest.h"
int main(void) {
  guest_ok("ext_sigterm_default");
  puts("READY");
  fflush(stdout);
  for (;;)
    pause();
}
