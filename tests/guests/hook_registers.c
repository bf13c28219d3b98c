// build: -pthread -O1 -mno-red-zone
// varies
// loses
// not in code: what is left in registers may be addresses
// not in data: what is left in registers may be addresses
// Proves: what a function leaves in registers that it need not keep is the same in every replica, whoever has run the C
// library's own code. Programs do not ask for it, but come to see it: the dynamic linker puts all registers on the stack when it looks
// up the next function, and who sorts in parallel later exchanges what lies there (diamond).
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>
enum { THREADS = 3, ROUNDS = 50 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static volatile int turn;
static __thread uint64_t seen;

// Calls it, and notes what the registers hold then.
__attribute__((noinline)) static void call(void *function, void *x, void *y) {
  register uint64_t a __asm__("rax") = (uintptr_t)function, di __asm__("rdi") = (uintptr_t)x;
  register uint64_t si __asm__("rsi") = (uintptr_t)y, d __asm__("rdx") = 0, c __asm__("rcx") = 0;
  register uint64_t r8 __asm__("r8") = 0, r9 __asm__("r9") = 0, r10 __asm__("r10") = 0;
  uint64_t vector[2];
  __asm__ volatile("mov %%rsp, %%rbx\n and $-16, %%rsp\n call *%%rax\n mov %%rbx, %%rsp\n movdqu %%xmm1, %[v]"
                   : "+r"(a), "+r"(di), "+r"(si), "+r"(d), "+r"(c), "+r"(r8), "+r"(r9), "+r"(r10), [v] "=m"(vector)
                   :
                   : "rbx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                     "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  uint64_t all[] = {di, si, d, c, r8, r9, r10, vector[0], vector[1]};
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
    seen = guest_mix(seen, all[i]);
}

static void *work(void *arg) {
  int me = (int)(uintptr_t)arg;
  call(pthread_barrier_wait, &barrier, NULL);
  for (int i = 0; i < ROUNDS; i++) {
    call(pthread_mutex_lock, &lock, NULL);
    while (turn % THREADS != me)
      call(pthread_cond_wait, &changed, &lock);
    turn++;
    call(pthread_cond_broadcast, &changed, NULL);
    call(pthread_mutex_unlock, &lock, NULL);
    call(sem_post, &sem, NULL);
    call(sem_wait, &sem, NULL);
  }
  return (void *)(uintptr_t)seen;
}

int main(void) {
  pthread_t t[THREADS];
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0 && sem_init(&sem, 0, 0) == 0);
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, work, (void *)i) == 0);
  for (int i = 0; i < THREADS; i++) {
    void *registers;
    CHECK(pthread_join(t[i], &registers) == 0);
    printf("%d: %016llx\n", i, (unsigned long long)(uintptr_t)registers);
  }
  guest_ok("hook_registers");
}
