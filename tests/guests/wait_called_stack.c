// build: -O2
// not in clocks: order decided by plain loads is not repeated there
// Proves: a function whose address lies on the stack, called in a loop until it says yes, is the one that is called; and
// the loop gives the turn away.
#include "guest.h"
#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 40 };
static volatile int ready;
static volatile uint64_t value;

__attribute__((noinline, used)) static int is_ready(void) {
  return ready;
}

__attribute__((noinline, used)) static int is_another(void) {
  _exit(2);
}

static void wait_until_ready(void) {
  // Beside the address of what is called lie those of what is not.
  __asm__ volatile("subq $0x110, %%rsp\n\t"
                   "leaq %P1(%%rip), %%rax\n\t"
                   "movq %%rax, 0x58(%%rsp)\n\t"
                   "movq %%rax, 0x68(%%rsp)\n\t"
                   "leaq %P0(%%rip), %%rax\n\t"
                   "movq %%rax, 0x60(%%rsp)\n"
                   "1: call *0x60(%%rsp)\n\t"
                   "testl %%eax, %%eax\n\t"
                   "je 1b\n\t"
                   "addq $0x110, %%rsp"
                   :
                   : "i"(is_ready), "i"(is_another)
                   : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void *stores(void *arg) {
  for (int i = 0; i < ROUNDS; i++) {
    while (ready)
      usleep(50);
    value = guest_mix(value, i);
    ready = 1;
  }
  return arg;
}

int main(void) {
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, stores, NULL));
  uint64_t h = 0;
  for (int i = 0; i < ROUNDS; i++) {
    wait_until_ready();
    h = guest_mix(h, value);
    ready = 0;
  }
  CHECK(!pthread_join(t, NULL));
  printf("%016llx\n", (unsigned long long)h);
  guest_ok("wait_called_stack");
}
