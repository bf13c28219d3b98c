// build: -pthread -O2
// varies
// loses
// Proves: what a compare-and-exchange expects is loaded in order, though a function is called in between and the word is named by way
// of another register (crossbeam's deque: `Stealer::steal`).
#include "guest.h"
#include <pthread.h>
#define ITEMS 40000
#define THIEVES 2

struct deque {
  uint64_t pad[8], front, back;
};
static struct deque *the;
static uint64_t stolen[THIEVES], failed, begun;

__attribute__((noipa)) static uint64_t look(uint64_t at) { return at & 7; }

// 0: there is none; 1: somebody else was first.
__attribute__((noipa)) static uint64_t steal(struct deque **d) {
  uint64_t front, back;
  __asm__ volatile("movq %1, %0" : "=r"(front) : "m"((*d)->front));
  uint64_t seen = look(front);
  __asm__ volatile("movq %1, %0" : "=r"(back) : "m"((*d)->back));
  if ((int64_t)(back - front) <= 0)
    return 0;
  struct deque *again = *(struct deque *volatile *)d;
  uint64_t expected = front;
  if (!__atomic_compare_exchange_n(&again->front, &expected, front + 1, 0, 5, 5))
    return 1;
  return front + 2 + (seen & 8);
}

static void *thief(void *arg) {
  uint64_t *sum = arg;
  struct deque *d = the;
  __atomic_fetch_add(&begun, 1, 5);
  for (;;) {
    uint64_t item = steal(&d);
    if (item == 1)
      __atomic_fetch_add(&failed, 1, 5);
    else if (item)
      *sum = guest_mix(*sum, item);
    else if (__atomic_load_n(&d->front, 5) == ITEMS)
      return NULL;
  }
}

int main(void) {
  pthread_t t[THIEVES];
  CHECK((the = calloc(1, sizeof *the)));
  for (int i = 0; i < THIEVES; i++)
    CHECK(!pthread_create(&t[i], NULL, thief, &stolen[i]));
  while (__atomic_load_n(&begun, 5) != THIEVES)
    usleep(100);
  for (int i = 1; i <= ITEMS; i++)
    __atomic_store_n(&the->back, i, __ATOMIC_RELEASE);
  for (int i = 0; i < THIEVES; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx %016llx\n", (unsigned long long)stolen[0],
         (unsigned long long)(stolen[1] ^ (uint64_t)getpid()));
  guest_ok("load_stolen");
}
