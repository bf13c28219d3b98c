// build:
// deterministic
// loses
// Proves: a loop without any call is still interrupted by its timer (delivery
// cannot wait for the next call for ever) and leaves by siglongjmp.
#include "guest.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
static sigjmp_buf out;
static void on(int s) { siglongjmp(out, s); }
int main(void) {
  CHECK(signal(SIGALRM, on) != SIG_ERR);
  int r = sigsetjmp(out, 1);
  if (r == 0) {
    struct itimerval it = {{0, 0}, {0, 20000}};
    CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
    for (;;)
      __asm__ volatile("");
  }
  CHECK(r == SIGALRM);
  guest_ok("sig_spin_no_calls");
}
