// build: -O2
// varies
// delayed
// ascends
// Proves: code that several threads map at once, in memory that they reserve and give back, is rewritten alike in all
// replicas: node's workers, each of which maps the builtins anew.
#define _GNU_SOURCE
#include "guest.h"
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 12, CALLS = 200 };
#define RESERVED ((size_t)512 << 20)
#define ALIGNED ((size_t)1 << 20)

static _Atomic uint64_t word;
static uintptr_t code_start, code_bytes, code_offset;
static int self;

__attribute__((noipa)) static uint64_t take(_Atomic uint64_t *from) {
  return atomic_fetch_add(from, 1);
}

static int find(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)size, (void)arg;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
      code_start = info->dlpi_addr + p->p_vaddr;
      code_bytes = p->p_memsz;
      code_offset = p->p_offset;
    }
  }
  return 1; // The program comes first.
}

static void *body(void *arg) {
  uint64_t h = (uintptr_t)arg;
  for (int i = 0; i < ROUNDS; i++) {
    char *all = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    CHECK(!munmap(all, ALIGNED));
    char *code = mmap(all + ALIGNED, code_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, self,
                      code_offset);
    CHECK(code == all + ALIGNED);
    uint64_t (*copy)(_Atomic uint64_t *) = (void *)(code + ((uintptr_t)take - code_start));
    for (int k = 0; k < CALLS; k++)
      h = guest_mix(h, copy(&word));
    CHECK(!munmap(code, RESERVED - ALIGNED));
  }
  return (void *)(uintptr_t)h;
}

int main(void) {
  dl_iterate_phdr(find, NULL);
  CHECK((self = open("/proc/self/exe", O_RDONLY)) >= 0);
  pthread_t t[THREADS];
  uint64_t h = 0;
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < THREADS; i++) {
    void *got;
    CHECK(!pthread_join(t[i], &got));
    h = guest_mix(h, (uintptr_t)got);
  }
  CHECK(word == THREADS * ROUNDS * CALLS);
  printf("%016llx\n", (unsigned long long)h);
  guest_ok("mmap_code_threads");
}
