// build: -pthread -O2
// loses
// not in code: the registers that are compared hold addresses
// not in data: the registers that are compared hold addresses
// Proves: a thread that asks flags over and over until another thread takes their memory away faults there in all replicas alike,
// after as many looks (which are counted, not logged), whether its handler leaves by siglongjmp or lets it look again elsewhere.
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { ROUNDS = 30 };
static sigjmp_buf out;
static uint64_t seen;
static volatile long looks;
static _Atomic int *volatile flags;
static _Atomic int asks;

static void handler(int signal) {
  (void)signal;
  siglongjmp(out, 1);
}

__attribute__((noipa)) static long ask(_Atomic int *p) {
  if (!p)
    return atomic_fetch_add(&asks, 1);
  for (;;) {
    if (atomic_load_explicit(&p[0], memory_order_relaxed) == 1)
      return -1;
    if (atomic_load_explicit(&p[8], memory_order_relaxed) == 1)
      return -2;
    looks++;
  }
}

static void *asker(void *unused) {
  (void)unused;
  for (int i = 0; i < ROUNDS; i++) {
    while (atomic_load(&asks) != 2 * i + 1)
      sched_yield();
    looks = 0;
    if (!sigsetjmp(out, 1))
      ask(flags);
    seen = guest_mix(seen, (uint64_t)looks);
    atomic_store(&asks, 2 * i + 2);
  }
  return NULL;
}

int main(void) {
  struct sigaction action = {.sa_handler = handler};
  CHECK(!sigaction(SIGSEGV, &action, NULL));
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, asker, NULL));
  for (int i = 0; i < ROUNDS; i++) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    flags = page;
    atomic_store(&asks, 2 * i + 1);
    usleep(1000);
    CHECK(!munmap(page, 4096));
    while (atomic_load(&asks) != 2 * i + 2)
      usleep(100);
  }
  CHECK(!pthread_join(t, NULL));
  FILE *f = fopen("/dev/null", "w");
  CHECK(f);
  fprintf(f, "%016llx\n", (unsigned long long)seen);
  CHECK(!fclose(f));
  guest_ok("load_gone");
}
