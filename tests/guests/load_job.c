// build: -pthread -O2
// deterministic
// loses
// Proves: a word at a fixed place that a loop does nothing but look at is volatile, and loaded in order wherever that is: the
// worker takes the job's number from it once more behind the loop, and keeps it across a call (as RAxML's do).
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#define JOBS 3000

static volatile int job;
static volatile char done[64];
static uint64_t sums[2];

__attribute__((noipa)) static void work(int number, int self) {
  sums[self] = guest_mix(sums[self], (uint64_t)number);
}

__attribute__((noipa)) static void *worker(void *arg) {
  int mine = 0;
  for (;;) {
    while (job == mine)
      ;
    mine = job;
    if (mine < 0)
      return arg;
    work(mine, 1);
    done[1] = 1;
  }
}

int main(void) {
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, worker, NULL));
  for (int i = 1; i <= JOBS; i++) {
    job = i;
    work(i, 0);
    while (!done[1])
      if (i % 64 == 0)
        sched_yield();
    done[1] = 0;
  }
  job = -1;
  CHECK(!pthread_join(t, NULL));
  CHECK(sums[0] == sums[1]);
  printf("%016llx\n", (unsigned long long)sums[1]);
  guest_ok("load_job");
}
