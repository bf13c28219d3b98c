// build:
// deterministic
// loses
// Proves: unwinding from a signal handler through an interrupted call reaches
// main: every frame lies in a known object, no trampoline's address shows.
#include "guest.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
extern char __executable_start, etext;
static volatile int own, strange;
static void on(int s) {
  (void)s;
  void *pc[64];
  int n = backtrace(pc, 64);
  for (int i = 0; i < n; i++) {
    Dl_info info;
    own += (char *)pc[i] >= &__executable_start && (char *)pc[i] < &etext;
    strange += dladdr(pc[i], &info) == 0;
  }
}
int main(void) {
  void *warm[4];
  CHECK(backtrace(warm, 4) > 0);
  CHECK(signal(SIGUSR1, on) != SIG_ERR);
  CHECK(kill(getpid(), SIGUSR1) == 0);
  CHECK(own >= 3 && strange == 0); // handler, main, _start
  guest_ok("raw_backtrace");
}
