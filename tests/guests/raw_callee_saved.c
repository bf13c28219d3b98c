// build:
// deterministic
// loses
// Proves: rewritten entries of lock functions keep the calling convention:
// callee-saved registers, stack alignment of any kind, and the return address.
#include "guest.h"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
long probe(void *f, void *arg);
__asm__(".text\n.globl probe\n.type probe,@function\nprobe:\n"
        " push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rdi,%rax\n mov %rsi,%rdi\n"
        " mov $0x1111,%ebx\n mov $0x2222,%ebp\n mov $0x3333,%r12d\n"
        " mov $0x4444,%r13d\n mov $0x5555,%r14d\n mov %rsp,%r15\n"
        " sub $8,%rsp\n call *%rax\n add $8,%rsp\n"
        " cmp $0x1111,%rbx\n jne 1f\n cmp $0x2222,%rbp\n jne 1f\n"
        " cmp $0x3333,%r12\n jne 1f\n cmp $0x4444,%r13\n jne 1f\n"
        " cmp $0x5555,%r14\n jne 1f\n cmp %r15,%rsp\n jne 1f\n"
        " cltq\n jmp 2f\n1: mov $-1,%rax\n2:\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
        ".size probe,.-probe\n");
int main(void) {
  for (int i = 0; i < 10000; i++) {
    CHECK(probe((void *)pthread_mutex_lock, &m) == 0);
    CHECK(probe((void *)pthread_mutex_trylock, &m) == EBUSY);
    CHECK(probe((void *)pthread_mutex_unlock, &m) == 0);
  }
  guest_ok("raw_callee_saved");
}
