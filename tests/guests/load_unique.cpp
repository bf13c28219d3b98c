// build: -pthread -O2
// varies
// loses
// Proves: whether an object has one owner left, asked in a function in which no instruction is atomic, is looked at in order
// (std::promise's destructor asks so; osmium's threads).
#include "guest.h"
#include <memory>
#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 4000, SLOTS = 64 };

static std::shared_ptr<int> slots[SLOTS];
static pthread_barrier_t start;
static uint64_t sums[2];

__attribute__((noipa)) static bool is_alone(const std::shared_ptr<int> *p) { return p->use_count() == 1; }

__attribute__((noipa)) static void note(uint64_t *sum, int what) { *sum = guest_mix(*sum, what); }

// Takes its own reference and gives it back, over and over.
static void *borrow(void *) {
  uint64_t seed = 5;
  pthread_barrier_wait(&start);
  for (int i = 0; i < ROUNDS; i++) {
    auto mine = slots[guest_rand(&seed) % SLOTS];
    guest_work(&seed, 50);
    if (i % 64 == 0)
      sched_yield();
  }
  return nullptr;
}

static void *ask(void *) {
  uint64_t seed = 9;
  pthread_barrier_wait(&start);
  for (int i = 0; i < ROUNDS; i++) {
    if (is_alone(&slots[i % SLOTS]))
      note(&sums[0], i);
    else
      note(&sums[1], i);
    guest_work(&seed, 30);
    if (i % 64 == 0)
      sched_yield();
  }
  return nullptr;
}

int main() {
  pthread_t t[2];
  CHECK(!pthread_barrier_init(&start, nullptr, 2));
  for (int i = 0; i < SLOTS; i++)
    slots[i] = std::make_shared<int>(i);
  CHECK(!pthread_create(&t[0], nullptr, borrow, nullptr) && !pthread_create(&t[1], nullptr, ask, nullptr));
  for (auto &one : t)
    CHECK(!pthread_join(one, nullptr));
  printf("%016llx %016llx\n", (unsigned long long)sums[0], (unsigned long long)sums[1]);
  guest_ok("load_unique");
}
