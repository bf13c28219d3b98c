// build: -std=c++20
// varies
// delayed
// Proves: a sequence lock's reader that has the lock by reference, and so loads its address again for each look, is repeated,
// and so is how often it goes round before it finds the flag that ends it.
#include "guest.h"
#include <atomic>
#include <thread>
using std::atomic;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

struct Sequence {
  atomic<unsigned> number{0};
  atomic<long> a{0}, b{0};
};

int main() {
  Sequence q;
  atomic<bool> stop{false};
  long torn[2] = {}, reads[2] = {};
  unsigned long hash[2] = {};
  auto read = [&](int k) {
    while (!stop.load(memory_order_acquire)) {
      unsigned number = q.number.load(memory_order_acquire);
      if (number & 1)
        continue;
      long a = q.a.load(memory_order_relaxed), b = q.b.load(memory_order_relaxed);
      std::atomic_thread_fence(memory_order_acquire);
      if (q.number.load(memory_order_relaxed) != number)
        continue;
      if (a != -b)
        torn[k]++;
      reads[k]++;
      hash[k] = guest_mix(hash[k], a);
    }
  };
  std::thread one(read, 0), two(read, 1);
  for (long i = 1; i < 6000; i++) {
    if (i % 300 == 0)
      std::this_thread::yield();
    unsigned number = q.number.load(memory_order_relaxed);
    q.number.store(number + 1, memory_order_relaxed);
    std::atomic_thread_fence(memory_order_release);
    q.a.store(i, memory_order_relaxed);
    q.b.store(-i, memory_order_relaxed);
    q.number.store(number + 2, memory_order_release);
  }
  stop = true;
  one.join();
  two.join();
  CHECK(torn[0] == 0 && torn[1] == 0);
  printf("%016lx, %ld reads\n", hash[0] ^ hash[1], reads[0] + reads[1]);
  guest_ok("load_captured");
}
