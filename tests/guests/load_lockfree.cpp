// build: -std=c++20
// varies
// loses
// Proves: what is found by loads alone is repeated: a queue without atomic instructions whose empty polls are counted, a
// sequence lock's reader, a count that is extended to eight bytes, a bit that is tested.
#include "guest.h"
#include <atomic>
#include <memory>
#include <thread>
using std::atomic;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

struct Queue {
  long cells[64];
  atomic<size_t> head{0}, tail{0};
  bool push(long v) {
    size_t at = tail.load(memory_order_relaxed);
    if (at - head.load(memory_order_acquire) == 64)
      return false;
    cells[at % 64] = v;
    tail.store(at + 1, memory_order_release);
    return true;
  }
  bool pop(long &v) {
    size_t at = head.load(memory_order_relaxed);
    if (at == tail.load(memory_order_acquire))
      return false;
    v = cells[at % 64];
    head.store(at + 1, memory_order_release);
    return true;
  }
};

struct Sequence {
  atomic<unsigned> number{0};
  atomic<long> a{0}, b{0};
  void write(long x) {
    unsigned now = number.load(memory_order_relaxed);
    number.store(now + 1, memory_order_relaxed);
    std::atomic_thread_fence(memory_order_release);
    a.store(x, memory_order_relaxed);
    b.store(-x, memory_order_relaxed);
    number.store(now + 2, memory_order_release);
  }
  bool read(long &x) {
    unsigned now = number.load(memory_order_acquire);
    if (now & 1)
      return false;
    long p = a.load(memory_order_relaxed), q = b.load(memory_order_relaxed);
    std::atomic_thread_fence(memory_order_acquire);
    x = p;
    return number.load(memory_order_relaxed) == now && p == -q;
  }
};

static void queue() {
  static Queue q;
  unsigned long hash = 0, empty = 0;
  std::thread producer([] {
    for (long i = 0; i < 5000; i++)
      while (!q.push(i))
        std::this_thread::yield();
  });
  std::thread consumer([&] {
    long v;
    for (int i = 0; i < 5000;) {
      if (q.pop(v)) {
        hash = hash * 31 + (unsigned long)v;
        i++;
      } else {
        empty++;
        std::this_thread::yield();
      }
    }
  });
  producer.join();
  consumer.join();
  printf("queue %lu, empty %lu\n", hash, empty);
}

static void sequence() {
  static Sequence s;
  static atomic<bool> stop{false};
  unsigned long whole = 0, torn = 0;
  std::thread writer([] {
    for (long i = 0; i < 5000; i++)
      s.write(i);
    stop = true;
  });
  std::thread reader([&] {
    long x;
    while (!stop.load(memory_order_acquire)) {
      if (s.read(x))
        whole++;
      else
        torn++;
    }
  });
  writer.join();
  reader.join();
  printf("sequence: %lu whole, %lu torn\n", whole, torn);
}

static void count() {
  auto p = std::make_shared<int>(5);
  atomic<long> sum{0};
  std::thread all[3];
  for (auto &t : all)
    t = std::thread([&, p] {
      for (int i = 0; i < 500; i++) {
        auto copy = p;
        sum += *copy + copy.use_count() % 2;
      }
    });
  for (auto &t : all)
    t.join();
  printf("count %ld\n", sum.load());
}

static void bits() {
  static atomic<unsigned long> ready{0};
  unsigned long order = 0, looks = 0;
  std::thread all[4];
  for (unsigned k = 0; k < 4; k++)
    all[k] = std::thread([k] {
      for (unsigned i = 0; i < 16; i++) {
        ready.fetch_or(1ul << (k * 16 + i));
        std::this_thread::yield();
      }
    });
  for (unsigned at = 0; at < 64; looks++) {
    if (ready.load(memory_order_acquire) >> at & 1) {
      order = order * 7 + looks;
      at++;
    }
  }
  for (auto &t : all)
    t.join();
  printf("bits %lx\n", order);
}

int main() {
  queue();
  sequence();
  count();
  bits();
  guest_ok("load_lockfree");
}
