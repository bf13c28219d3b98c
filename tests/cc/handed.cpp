// Threads take tickets from a set of bits, as x265's pool does: the set is changed by atomic instructions in one place, and loaded in
// another one, in a function that has none, to be handed on. No sign in that function shows that the load decides.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 3, ROUNDS = 20000 };

struct Pool {
  uint64_t other[4];
  std::atomic<uint64_t> set{0};
};

static Pool pool;
static uint64_t seen[THREADS];

__attribute__((noipa)) static void change(std::atomic<uint64_t> *set, uint64_t bits) { set->fetch_xor(bits, std::memory_order_acq_rel); }

__attribute__((noipa)) static uint64_t mixed(uint64_t sum, uint64_t set) { return (sum ^ set) * 0x100000001b3; }

__attribute__((noipa)) static uint64_t look(Pool *p, uint64_t sum) { return mixed(sum, p->set.load(std::memory_order_acquire)); }

static void *work(void *arg) {
  uintptr_t who = (uintptr_t)arg;
  uint64_t sum = who;
  for (int i = 0; i < ROUNDS; i++) {
    change(&pool.set, 1ull << (i * 7 + who) % 64);
    sum = look(&pool, sum);
    if (i % 64 == 0)
      sched_yield();
  }
  seen[who] = sum;
  return nullptr;
}

int main() {
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    pthread_create(&t[i], nullptr, work, (void *)i);
  for (auto &one : t)
    pthread_join(one, nullptr);
  printf("%016llx\n", (unsigned long long)(seen[0] ^ seen[1] << 1 ^ seen[2] << 2));
}
