// build:
// deterministic
// loses
// Proves: a handler on its alternate stack, nested use refused, also after a
// stack overflow of the main thread (SIGSEGV, left by siglongjmp).
#include "guest.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
static char alt[64 << 10];
static sigjmp_buf out;
static void on(int s) {
  char here;
  CHECK(&here >= alt && &here < alt + sizeof alt);
  stack_t now;
  CHECK(sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_ONSTACK));
  CHECK(sigaltstack(&now, NULL) == -1 && errno == EPERM);
  if (s == SIGSEGV)
    siglongjmp(out, 1);
}
static int __attribute__((noinline)) overflow(volatile char *p) {
  volatile char page[4096];
  page[0] = p ? p[0] : 1;
  return page[0] ? overflow(page) + page[0] : 0;
}
int main(void) {
  struct rlimit lim = {512 << 10, 8 << 20};
  CHECK(setrlimit(RLIMIT_STACK, &lim) == 0);
  stack_t st = {.ss_sp = alt, .ss_size = sizeof alt};
  CHECK(sigaltstack(&st, NULL) == 0);
  struct sigaction sa = {.sa_handler = on, .sa_flags = SA_ONSTACK};
  CHECK(!sigaction(SIGUSR1, &sa, NULL) && !sigaction(SIGSEGV, &sa, NULL));
  CHECK(raise(SIGUSR1) == 0);
  for (int i = 0; i < 3; i++)
    if (sigsetjmp(out, 1) == 0)
      overflow(NULL);
  guest_ok("sig_altstack");
}
