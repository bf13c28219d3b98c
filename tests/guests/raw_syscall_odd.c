// build:
// deterministic
// loses
// Proves: awkward places for a syscall instruction: two in a row, the target
// of a loop's jump, the jump target right behind it, garbage in the upper half
// of rax, the direction flag set, no usable stack pointer at all.
#include "guest.h"
#include <sys/syscall.h>
#define CLOBBER "rcx", "r11", "memory", "cc"
int main(void) {
  long pid = getpid(), r, n;
  // Five bytes apart.
  __asm__ volatile("syscall\n mov $39,%%eax\n syscall\n" : "=a"(r) : "a"(39) : CLOBBER);
  CHECK(r == pid);
  // Adjacent: close(-1) gives -EBADF, which is no call: -ENOSYS.
  __asm__ volatile("syscall\n syscall\n" : "=a"(r) : "a"(SYS_close), "D"(-1L) : CLOBBER);
  CHECK(r == -ENOSYS);
  // The jump goes to the syscall itself, with and without preparing rax.
  n = 100;
  __asm__ volatile("1: mov $39,%%eax\n jmp 2f\n nop\n2: syscall\n3: dec %1\n jnz 1b\n"
                   : "=&a"(r), "+b"(n)
                   :
                   : CLOBBER);
  CHECK(r == pid && n == 0);
  // A jump to the instruction behind the syscall.
  n = 0;
  __asm__ volatile("mov $39,%%eax\n jmp 1f\n2: mov $102,%%eax\n syscall\n"
                   "1: inc %1\n cmp $2,%1\n jb 2b\n"
                   : "=&a"(r), "+b"(n)
                   :
                   : CLOBBER);
  CHECK(r == (long)getuid() && n == 2);
  // The kernel looks at 32 bits of the number.
  __asm__ volatile("syscall" : "=a"(r) : "a"(0xdeadbeef00000027) : CLOBBER);
  CHECK(r == pid);
  // Direction flag set: preserved, and no copy runs backwards.
  char buf[2][64];
  uint64_t flags;
  memset(buf, 'q', sizeof buf);
  __asm__ volatile("std\n syscall\n pushf\n pop %1\n cld\n"
                   : "=a"(r), "=&r"(flags)
                   : "a"(SYS_clock_gettime), "D"(0L), "S"(buf[1])
                   : CLOBBER);
  CHECK(r == 0 && (flags & 0x400) && buf[0][63] == 'q' && buf[1][16] == 'q');
  // rsp is just a register here.
  __asm__ volatile("mov %%rsp,%%rbx\n xor %%esp,%%esp\n syscall\n"
                   "mov %%rsp,%%rdx\n mov %%rbx,%%rsp\n"
                   : "=a"(r), "=d"(n)
                   : "a"(39)
                   : "rbx", CLOBBER);
  CHECK(r == pid && n == 0);
  __asm__ volatile("mov %%rsp,%%rbx\n mov $0x1234567,%%esp\n syscall\n"
                   "mov %%rsp,%%rdx\n mov %%rbx,%%rsp\n"
                   : "=a"(r), "=d"(n)
                   : "a"(SYS_close), "D"(-1L)
                   : "rbx", CLOBBER);
  CHECK(r == -EBADF && n == 0x1234567);
  guest_ok("raw_syscall_odd");
}
