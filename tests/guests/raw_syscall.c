// build:
// deterministic
// loses
// Proves: a syscall instruction preserves what the kernel preserves: all
// general registers but rax, rcx (the next instruction) and r11 (the flags),
// the flags, the xmm registers, the red zone.
#include "guest.h"
#include <stddef.h>
#include <sys/syscall.h>
struct regs {
  uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14,
      r15, flags, next, red[16];
  __attribute__((aligned(16))) unsigned char xmm[16][16];
};
void call(struct regs *in, struct regs *out);
// rdi: in, rsi: out; keeps out on the stack, fills the red zone as well.
__asm__(".text\n.globl call\n.type call,@function\ncall:\n"
        " push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " push %rsi\n"
        " mov %rdi,%rax\n"
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        " mov 136+8*\\i(%rax),%rcx\n mov %rcx,-128+8*\\i(%rsp)\n"
        " movaps 272+16*\\i(%rax),%xmm\\i\n"
        ".endr\n"
        " mov 8(%rax),%rbx\n mov 24(%rax),%rdx\n mov 32(%rax),%rsi\n"
        " mov 40(%rax),%rdi\n mov 48(%rax),%rbp\n mov 56(%rax),%r8\n"
        " mov 64(%rax),%r9\n mov 72(%rax),%r10\n mov 88(%rax),%r12\n"
        " mov 96(%rax),%r13\n mov 104(%rax),%r14\n mov 112(%rax),%r15\n"
        " mov (%rax),%rax\n"
        " stc\n"
        " syscall\n"
        "call_next:\n"
        // Store relative to the saved out pointer without touching the flags.
        " xchg %rax,(%rsp)\n"
        " mov %rbx,8(%rax)\n mov %rcx,16(%rax)\n mov %rdx,24(%rax)\n"
        " mov %rsi,32(%rax)\n mov %rdi,40(%rax)\n mov %rbp,48(%rax)\n"
        " mov %r8,56(%rax)\n mov %r9,64(%rax)\n mov %r10,72(%rax)\n"
        " mov %r11,80(%rax)\n mov %r12,88(%rax)\n mov %r13,96(%rax)\n"
        " mov %r14,104(%rax)\n mov %r15,112(%rax)\n"
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        " mov -128+8*\\i(%rsp),%rcx\n mov %rcx,136+8*\\i(%rax)\n"
        " movaps %xmm\\i,272+16*\\i(%rax)\n"
        ".endr\n"
        " pop %rcx\n mov %rcx,(%rax)\n"
        " pushf\n pop %rcx\n mov %rcx,120(%rax)\n"
        " lea call_next(%rip),%rcx\n mov %rcx,128(%rax)\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
        " ret\n.size call,.-call\n");
#define CARRY 1u
#define ARITHMETIC_FLAGS 0x8d5u
static void one(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t want, int any) {
  static struct regs in, out;
  memset(&out, 0, sizeof out);
  uint64_t seed = nr + 1;
  for (size_t i = 0; i < sizeof in / 8; i++)
    ((uint64_t *)&in)[i] = guest_rand(&seed);
  in.rax = nr;
  in.rdi = a;
  in.rsi = b;
  in.rdx = c;
  call(&in, &out);
  CHECK(any || out.rax == want);
  CHECK(out.rbx == in.rbx && out.rbp == in.rbp && out.rdx == in.rdx);
  CHECK(out.rsi == in.rsi && out.rdi == in.rdi);
  CHECK(out.r8 == in.r8 && out.r9 == in.r9 && out.r10 == in.r10);
  CHECK(out.r12 == in.r12 && out.r13 == in.r13 && out.r14 == in.r14 && out.r15 == in.r15);
  CHECK(out.rcx == out.next);
  CHECK((out.flags & ARITHMETIC_FLAGS) == (out.r11 & ARITHMETIC_FLAGS));
  CHECK((out.r11 & CARRY) && (out.r11 & 2));
  CHECK(!memcmp(out.xmm, in.xmm, sizeof in.xmm));
  CHECK(!memcmp(out.red, in.red, sizeof in.red));
}
int main(void) {
  char buf[64];
  int fds[2];
  CHECK(offsetof(struct regs, red) == 136 && offsetof(struct regs, xmm) == 272);
  for (int i = 0; i < 1000; i++) {
    one(SYS_getpid, 1, 2, 3, getpid(), 0);
    one(SYS_close, -1, 0, 0, -EBADF, 0);
    one(SYS_clock_gettime, 0, (uintptr_t)buf, 0, 0, 0);
    one(SYS_sched_yield, 0, 0, 0, 0, 0);
    one(SYS_brk, 0, 0, 0, 0, 1);
  }
  one(SYS_pipe, (uintptr_t)fds, 0, 0, 0, 0);
  one(SYS_write, fds[1], (uintptr_t) "hello", 5, 5, 0);
  one(SYS_read, fds[0], (uintptr_t)buf, 64, 5, 0);
  CHECK(!memcmp(buf, "hello", 5));
  one(SYS_write, 1, (uintptr_t) "by hand\n", 8, 8, 0);
  guest_ok("raw_syscall");
}
