// build:
// send: SIGINT
// exit: 3
// deterministic
// loses
// Proves: SIGINT sent to the run reaches the program's handler in a blocking
// read, and the program leaves by its own choice.
#include "guest.h"
#include <signal.h>
static volatile sig_atomic_t hits;
static void on(int s) {
  CHECK(s == SIGINT);
  hits++;
}
int main(void) {
  struct sigaction sa = {.sa_handler = on};
  CHECK(sigaction(SIGINT, &sa, NULL) == 0);
  int p[2];
  char c;
  CHECK(pipe(p) == 0);
  puts("READY");
  fflush(stdout);
  CHECK(read(p[0], &c, 1) == -1 && errno == EINTR && hits == 1);
  guest_ok("ext_sigint_handler");
  return 3;
}
