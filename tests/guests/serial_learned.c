// build:
// varies
// not in clocks: nothing in the code shows there that the loops wait
// not in data: with three replicas whose data lie elsewhere the place's trampoline is out of reach, and each hand-over takes a meeting
// Proves: two threads that wait for each other in loops that nothing shows to wait (they count in memory) hand over
// hundreds of times: the place is learned the first time, and counted from then on alike everywhere.
#include "guest.h"
#include <pthread.h>

enum { ROOM = 16, ITEMS = 3000 };
static volatile long ring[ROOM];
static volatile unsigned head, tail;
static volatile unsigned long full, empty;
static uint64_t sum;

static void *produce(void *arg) {
  for (long i = 0; i < ITEMS;) {
    unsigned at = tail;
    if (at - head == ROOM) {
      full++;
      continue;
    }
    ring[at % ROOM] = i++;
    tail = at + 1;
  }
  return arg;
}

static void *consume(void *arg) {
  for (long i = 0; i < ITEMS;) {
    unsigned at = head;
    if (at == tail) {
      empty++;
      continue;
    }
    sum = guest_mix(sum, ring[at % ROOM]);
    head = at + 1;
    i++;
  }
  return arg;
}

int main(void) {
  pthread_t threads[2];
  CHECK(!pthread_create(threads, NULL, produce, NULL));
  CHECK(!pthread_create(threads + 1, NULL, consume, NULL));
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  printf("full %lu, empty %lu, sum %lx\n", full, empty, sum);
  guest_ok("serial_learned");
}
