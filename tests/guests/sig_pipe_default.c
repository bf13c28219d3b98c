// build:
// exit: SIGPIPE
// deterministic
// loses
// Proves: writing to a pipe without reader kills by SIGPIPE.
#include "guest.h"
int main(void) {
  int p[2];
  CHECK(pipe(p) == 0 && close(p[0]) == 0);
  guest_ok("sig_pipe_default");
  (void)!write(p[1], "x", 1);
  return 1;
}
