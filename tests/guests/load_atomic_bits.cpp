// build: -pthread -O2
// varies
// loses
// Proves: an atomic word of which some bits are asked for, or which is compared with a constant, in a function in which no
// instruction is atomic, is looked at in order: queues between two threads each, without a lock (mimalloc's lists of freed blocks).
#include "guest.h"
#include <atomic>
#include <pthread.h>
#include <sched.h>

enum { PRODUCERS = 2 };
static unsigned items = 8000;

// What comes behind it: nothing yet, or an address and a mark.
struct Item {
  std::atomic<uintptr_t> next{0};
  unsigned value = 0;
};

struct List {
  Item *head = new Item;
  Item *tail = head;
  std::atomic<uint64_t> rest{0};
};

static List lists[PRODUCERS];
static pthread_barrier_t start;

__attribute__((noinline)) static bool has_more(List *list) {
  return (list->head->next.load(std::memory_order_acquire) & 3) == 1;
}

__attribute__((noinline)) static bool is_finished(List *list) {
  return list->rest.load(std::memory_order_acquire) > 3;
}

static void *produce(void *arg) {
  List &list = lists[(uintptr_t)arg];
  uint64_t seed = (uintptr_t)arg;
  pthread_barrier_wait(&start);
  for (unsigned i = 0; i < items; i++) {
    if (guest_rand(&seed) % 64 == 0)
      sched_yield();
    Item *item = new Item;
    item->value = i;
    list.tail->next.store((uintptr_t)item | 1, std::memory_order_release);
    list.tail = item;
  }
  list.rest.store(items + 4, std::memory_order_release);
  return nullptr;
}

int main(int argc, char **argv) {
  if (argc > 1)
    items = (unsigned)atoi(argv[1]);
  pthread_t t[PRODUCERS];
  CHECK(pthread_barrier_init(&start, nullptr, PRODUCERS + 1) == 0);
  for (uintptr_t i = 0; i < PRODUCERS; i++)
    CHECK(pthread_create(&t[i], nullptr, produce, (void *)i) == 0);
  pthread_barrier_wait(&start);
  unsigned taken[PRODUCERS] = {}, none = 0, early = 0;
  uint64_t order = 0;
  while (taken[0] + taken[1] < PRODUCERS * items) {
    bool found = false;
    for (unsigned i = 0; i < PRODUCERS; i++) {
      List &list = lists[i];
      if (!has_more(&list))
        continue;
      early += !is_finished(&list);
      Item *gone = list.head;
      list.head = (Item *)(gone->next.load(std::memory_order_relaxed) & ~(uintptr_t)3);
      CHECK(list.head->value == taken[i]++);
      order = guest_mix(order, i);
      delete gone;
      found = true;
    }
    if (!found) {
      none++;
      sched_yield();
    }
  }
  for (int i = 0; i < PRODUCERS; i++)
    CHECK(pthread_join(t[i], nullptr) == 0);
  printf("order %016llx, %u times none, %u early\n", (unsigned long long)order, none, early);
  guest_ok("load_atomic_bits");
}
