// build:
// send: SIGHUP
// exit: SIGHUP
// deterministic
// loses
// Proves: SIGHUP sent to the run, without a handler, ends it by that signal.
#include "guest.h"
int main(void) {
  guest_ok("ext_sighup_default");
  puts("READY");
  fflush(stdout);
  for (;;)
    pause();
}
