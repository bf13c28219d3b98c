// build:
// send: SIGINT
// exit: SIGINT
// deterministic
// loses
// Proves: SIGINT sent to the run, without a handler, ends it by that signal.
#include "guest.h"
int main(void) {
  guest_ok("ext_sigint_default");
  puts("READY");
  fflush(stdout);
  for (;;)
    pause();
}
