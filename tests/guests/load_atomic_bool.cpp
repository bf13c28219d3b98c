// build: -pthread -O2
// varies
// loses
// Proves: an atomic byte that a function asks for, in which no instruction is atomic, is looked at in order, and so is whether its
// object points to something: lists between two threads each, without a lock (fastp's).
#include "guest.h"
#include <atomic>
#include <pthread.h>
#include <sched.h>

enum { PRODUCERS = 2, ITEMS = 20000 };

struct Item {
  unsigned value;
  Item *next;
  std::atomic<bool> next_is_there;
};

struct List {
  Item *head = nullptr;
  Item *tail = nullptr;
  std::atomic<bool> is_finished{false};
};

static List lists[PRODUCERS];
static pthread_barrier_t start;

// The consumer alone takes, and leaves the last one there until another one has come.
__attribute__((noinline)) static Item *first(List *list) {
  if (list->head == nullptr)
    return nullptr;
  if (!list->head->next_is_there.load(std::memory_order_acquire) && !list->is_finished.load(std::memory_order_acquire))
    return nullptr;
  return list->head;
}

static void give(List &list, Item *item) {
  if (list.head == nullptr) {
    list.tail = item;
    __atomic_store_n(&list.head, item, __ATOMIC_RELEASE);
    return;
  }
  list.tail->next = item;
  list.tail->next_is_there.store(true, std::memory_order_release);
  list.tail = item;
}

static void *produce(void *arg) {
  List &list = lists[(uintptr_t)arg];
  uint64_t seed = (uintptr_t)arg;
  pthread_barrier_wait(&start);
  for (unsigned i = 0; i < ITEMS; i++) {
    if (guest_rand(&seed) % 64 == 0)
      sched_yield();
    give(list, new Item{i, nullptr, {false}});
  }
  list.is_finished.store(true, std::memory_order_release);
  return nullptr;
}

int main() {
  pthread_t t[PRODUCERS];
  CHECK(pthread_barrier_init(&start, nullptr, PRODUCERS + 1) == 0);
  for (uintptr_t i = 0; i < PRODUCERS; i++)
    CHECK(pthread_create(&t[i], nullptr, produce, (void *)i) == 0);
  pthread_barrier_wait(&start);
  unsigned taken[PRODUCERS] = {}, none = 0;
  uint64_t order = 0;
  while (taken[0] + taken[1] < PRODUCERS * ITEMS) {
    unsigned before = taken[0] + taken[1];
    for (unsigned i = 0; i < PRODUCERS; i++) {
      Item *item = taken[i] < ITEMS ? first(&lists[i]) : nullptr;
      if (item == nullptr)
        continue;
      CHECK(item->value == taken[i]++);
      if (taken[i] < ITEMS)
        lists[i].head = item->next;
      order = guest_mix(order, i);
      delete item;
    }
    if (before == taken[0] + taken[1]) {
      none++;
      sched_yield();
    }
  }
  for (int i = 0; i < PRODUCERS; i++)
    CHECK(pthread_join(t[i], nullptr) == 0);
  printf("order %016llx, %u times none\n", (unsigned long long)order, none);
  guest_ok("load_atomic_bool");
}
