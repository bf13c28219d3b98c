// build:
// deterministic
// loses
// Proves: SIGFPE, SIGILL, SIGTRAP, SIGBUS are the replica's own; the handler
// changes the program counter and the program goes on behind the fault.
#include "guest.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
static volatile sig_atomic_t last, hits, code;
static volatile int skip;
// Where to go on, if not `skip` bytes further.
static char *volatile to;
static void on(int s, siginfo_t *si, void *p) {
  last = s;
  code = si->si_code;
  hits++;
  greg_t *rip = &((ucontext_t *)p)->uc_mcontext.gregs[REG_RIP];
  *rip = to ? (greg_t)to : *rip + skip;
}
int main(void) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
  int sigs[] = {SIGFPE, SIGILL, SIGTRAP, SIGBUS, SIGSEGV};
  for (int i = 0; i < 5; i++)
    CHECK(sigaction(sigs[i], &sa, NULL) == 0);
  skip = 2;
  __asm__ volatile("xor %%ecx,%%ecx\n xor %%edx,%%edx\n mov $1,%%eax\n"
                   ".byte 0xf7,0xf1" ::
                       : "rax", "rcx", "rdx", "cc"); // div %ecx
  CHECK(last == SIGFPE);
  __asm__ volatile("ud2");
  CHECK(last == SIGILL);
  skip = 0;
  __asm__ volatile("int3");
  CHECK(last == SIGTRAP);
  // (Some hypervisors report it at the instruction, not behind it.)
  __asm__ volatile("lea 1f(%%rip),%%rax\n mov %%rax,%0\n .byte 0xf1\n 1:"
                   : "=m"(to)::"rax", "memory"); // int1
  CHECK(last == SIGTRAP && code == TRAP_BRKPT);
  to = NULL;
  int fd = open(guest_tmp("bus"), O_CREAT | O_TRUNC | O_RDWR, 0600);
  char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(fd >= 0 && p != MAP_FAILED && unlink(guest_tmp("bus")) == 0);
  skip = 2;
  __asm__ volatile(".byte 0x8a,0x01" ::"c"(p) : "rax"); // mov (%rcx),%al
  CHECK(last == SIGBUS);
  skip = 1;
  __asm__ volatile("hlt");
  CHECK(last == SIGSEGV && hits == 6);
  guest_ok("sig_sync_faults");
}
