// build:
// deterministic
// loses
// Proves: a handled SIGSEGV has the faulting address, the program's own
// program counter and registers, and can be left by siglongjmp, many times.
#include "guest.h"
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
static sigjmp_buf out;
static void *fault_at;
extern char load_site[];
uint64_t load(void *);
__asm__(".text\n.globl load\n.type load,@function\nload:\n mov $0x1234567,%edx\n"
        ".globl load_site\nload_site:\n mov (%rdi),%rax\n ret\n"
        ".size load, .-load\n");
static void on(int s, siginfo_t *si, void *p) {
  ucontext_t *uc = p;
  CHECK(s == SIGSEGV && si->si_code == SEGV_MAPERR);
  CHECK(si->si_addr == fault_at);
  CHECK(uc->uc_mcontext.gregs[REG_RIP] == (greg_t)load_site);
  CHECK(uc->uc_mcontext.gregs[REG_RDX] == 0x1234567);
  CHECK(uc->uc_mcontext.gregs[REG_RDI] == (greg_t)fault_at);
  siglongjmp(out, 1);
}
int main(void) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
  for (volatile int i = 1; i <= 1000; i++) {
    fault_at = (void *)(uintptr_t)(i * 8);
    if (sigsetjmp(out, 1) == 0) {
      load(fault_at);
      CHECK(!"came back");
    }
  }
  guest_ok("sig_segv_longjmp");
}
