// build:
// args: 16 3
// loses
// Proves: a process with much memory, of which only a part changes from then on,
// finds all of it as it left it; tests of recovery kill replicas meanwhile.
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#define PAGE 4096L
#define THREADS 3

static uint64_t *memory;
static long pages;
static int rounds;

static uint64_t *page(long n) { return memory + n * (PAGE / 8); }

static void nap(long us) {
  struct timespec t = {0, us * 1000};
  nanosleep(&t, NULL);
}

// Each thread has its own pages, and changes some of them now and then.
static void *work(void *arg) {
  long me = (long)(intptr_t)arg;
  for (int round = 0; round < rounds; round++) {
    for (long n = me; n < pages; n += 97 * THREADS)
      page(n)[round % 512 + 1]++;
    nap(20000);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  pages = atol(argv[1]) * ((1L << 20) / PAGE);
  rounds = atoi(argv[2]);
  CHECK(pages > 0 && rounds > 0 && rounds <= 400);
  memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  for (long n = 0; n < pages; n++)
    *page(n) = guest_mix(n, 1);
  pthread_t t[THREADS];
  for (long k = 0; k < THREADS; k++)
    CHECK(pthread_create(&t[k], NULL, work, (void *)(intptr_t)k) == 0);
  for (int k = 0; k < THREADS; k++)
    CHECK(pthread_join(t[k], NULL) == 0);
  for (long n = 0; n < pages; n++) {
    CHECK(*page(n) == guest_mix(n, 1));
    int changes = n % (97 * THREADS) < THREADS;
    for (int round = 0; round < rounds; round++)
      CHECK(page(n)[round % 512 + 1] == (uint64_t)changes);
  }
  guest_ok("recover_memory");
}
