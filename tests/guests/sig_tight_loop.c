// build: -pthread
// loses
// Proves: signals find a thread in a loop of a nanosecond, whose instructions have no room for a jump, after the same round in
// every replica, also beside other threads in the same code: what its registers and its stack held is printed. A breakpoint
// took fifty microseconds a round there, twenty seconds a signal, and all replicas stood meanwhile.
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
enum { THREADS = 3, KINDS = 3, ROUNDS = 60000000, EVERY_NS = 15000000, IN_LOOP = 0x5eed1234 };
static __thread uint64_t seen;
static __thread int rings;
static void on(int s, siginfo_t *info, void *context) {
  (void)s, (void)info;
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  // Elsewhere they may hold addresses.
  if (r[REG_R8] != IN_LOOP)
    return;
  seen = guest_mix(guest_mix(seen, r[REG_RAX]), guest_mix(r[REG_RCX], r[REG_RDX]));
  rings++;
}
// rax and rdx change in each round, and rcx counts to rdi.
static uint64_t in_registers(void) {
  uint64_t a = 1, d = 3, n = 0, to = ROUNDS;
  __asm__ volatile("mov $0x5eed1234, %%r8d\n1: lea (%%rax,%%rax,4), %%rax\n add $1, %%rcx\n add %%rdx, %%rax\n mov %%rax, %%rsi\n"
                   " shr $7, %%rsi\n xor %%rsi, %%rdx\n cmp %%rcx, %%rdi\n jne 1b\n xor %%r8d, %%r8d"
                   : "+a"(a), "+d"(d), "+c"(n)
                   : "D"(to)
                   : "rsi", "r8", "cc");
  return a + d;
}
// Nothing but a word of the stack changes.
static uint64_t on_the_stack(void) {
  volatile uint32_t word = 0;
  uint64_t a = 0, d = 0, n = 0;
  __asm__ volatile("mov $0x5eed1234, %%r8d\n1: addl $1, (%%rbx)\n cmp %%edi, (%%rbx)\n jne 1b\n xor %%r8d, %%r8d"
                   : "+a"(a), "+d"(d), "+c"(n)
                   : "b"(&word), "D"(ROUNDS / 4)
                   : "memory", "r8", "cc");
  return word;
}
// The loop is short, and another one is around it.
static uint64_t in_a_loop(void) {
  uint64_t a = 0, d = ROUNDS / 64, n = 0;
  __asm__ volatile("mov $0x5eed1234, %%r8d\n1: mov $64, %%cl\n2: add %%rdx, %%rax\n dec %%cl\n jne 2b\n dec %%rdx\n jne 1b\n xor %%r8d, %%r8d"
                   : "+a"(a), "+d"(d), "+c"(n)
                   :
                   : "r8", "cc");
  return a;
}
static uint64_t (*const kinds[KINDS])(void) = {in_registers, on_the_stack, in_a_loop};
static uint64_t results[THREADS][KINDS];
static void *compute(void *which) {
  uintptr_t me = (uintptr_t)which;
  struct sigevent ev = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
  ev.sigev_notify_thread_id = (int)syscall(SYS_gettid);
  timer_t timer;
  CHECK(timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0);
  struct itimerspec every = {{0, EVERY_NS}, {0, EVERY_NS}};
  CHECK(timer_settime(timer, 0, &every, NULL) == 0);
  for (int i = 0; i < KINDS; i++)
    results[me][i] = kinds[i]();
  CHECK(timer_delete(timer) == 0);
  printf("%d: %d rings at %016llx\n", (int)me, rings, (unsigned long long)seen);
  return NULL;
}
int main(void) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO | SA_RESTART};
  CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
  pthread_t t[THREADS];
  for (uintptr_t i = 1; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, compute, (void *)i) == 0);
  compute(NULL);
  for (int i = 1; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  for (int i = 1; i < THREADS; i++)
    for (int k = 0; k < KINDS; k++)
      CHECK(results[i][k] == results[0][k]);
  guest_ok("sig_tight_loop");
}
