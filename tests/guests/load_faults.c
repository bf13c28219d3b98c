// build:
// loses
// not in code: the registers that are compared hold addresses
// not in data: the registers that are compared hold addresses
// Proves: a load that decides about order, of memory that is not there, faults as a load of the program's own: in its
// handler, which may leave by siglongjmp, all replicas see the same registers.
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { ROUNDS = 40 };
static sigjmp_buf out;
static uint64_t seen;
static volatile sig_atomic_t faults;

static void handler(int signal, siginfo_t *info, void *context) {
  (void)signal;
  const greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  for (int i = REG_R8; i <= REG_RIP; i++)
    seen = guest_mix(seen, (uint64_t)r[i]);
  seen = guest_mix(seen, (uint64_t)info->si_addr);
  faults++;
  siglongjmp(out, 1);
}

__attribute__((noipa)) static int is(_Atomic int *p, int other) {
  if (atomic_load(p) == other)
    return 1;
  atomic_fetch_add(p, 1);
  return 0;
}

static void *reader(void *gone) {
  for (int i = 0; i < ROUNDS; i++)
    if (!sigsetjmp(out, 1))
      is((_Atomic int *)((char *)gone + 8 * i), 1);
  return NULL;
}

static void *other(void *word) {
  for (int i = 0; i < 2000; i++)
    is(word, -1);
  return NULL;
}

int main(void) {
  static _Atomic int word;
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  CHECK(!sigaction(SIGSEGV, &action, NULL));
  char *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(gone != MAP_FAILED);
  pthread_t t[3];
  CHECK(!pthread_create(&t[0], NULL, other, &word));
  CHECK(!pthread_create(&t[1], NULL, reader, gone));
  CHECK(!pthread_create(&t[2], NULL, other, &word));
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(faults == ROUNDS);
  CHECK(word == 4000);
  // To where the replicas are compared, and nobody reads it.
  FILE *f = fopen("/dev/null", "w");
  CHECK(f);
  fprintf(f, "%016llx\n", (unsigned long long)seen);
  CHECK(!fclose(f));
  guest_ok("load_faults");
}
