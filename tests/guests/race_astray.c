// build: -O1 -pthread
// loses
// Proves: a follower that a plain load has led astray, and that computes for ever, is found, however much processor time the
// leader's other threads use meanwhile.
// argv[1]: a replica that is to go astray (its number as the agent counts, from 0), or "f" for all but the first;
// argv[2]: for how many million yields the first thread spins.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// What no load of a program may find: it stands for one that finds what another thread has just stored.
static int own_number(void) { return *(volatile int *)0x2fe510000004; }

static void *work(void *arg) {
  uint64_t done = 0;
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&lock);
    done += i;
    pthread_mutex_unlock(&lock);
  }
  if (arg)
    for (;;)
      __asm__ volatile("");
  pthread_mutex_lock(&lock);
  pthread_mutex_unlock(&lock);
  return (void *)(uintptr_t)done;
}

int main(int argc, char **argv) {
  int spins = argc > 2 ? atoi(argv[2]) : 0;
  int astray = 0;
  if (argc > 1)
    astray = argv[1][0] == 'f' ? own_number() != 0 : own_number() == atoi(argv[1]);
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, work, (void *)(uintptr_t)astray));
  // It has no call that is logged, nor an atomic instruction.
  for (uint64_t k = 0; k < 1000 + (uint64_t)spins * 1000000; k++)
    sched_yield();
  void *done;
  CHECK(!pthread_join(t, &done));
  printf("%lu\n", (unsigned long)(uintptr_t)done);
  guest_ok("race_astray");
}
