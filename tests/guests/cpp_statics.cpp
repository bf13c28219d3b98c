// build: -std=c++20
// beyond
// Proves: guarded local statics (__cxa_guard) are constructed by one thread;
// which one, and in what order, is printed. (The guard is first looked at
// with a plain load: required only once __cxa_guard_acquire is an entry.)
#include "guest.h"
#include <mutex>
#include <thread>
#include <vector>
static std::mutex m;
static uint64_t order;
template <int N> struct Once {
  int by;
  explicit Once(int who) : by(who) {
    std::lock_guard<std::mutex> l(m);
    order = guest_mix(order, N * 100 + who);
  }
};
template <int N> static int one(int who) {
  static Once<N> o(who);
  return o.by;
}
template <int... N> static uint64_t all(int who, std::integer_sequence<int, N...>) {
  uint64_t h = 0, s = who + 1;
  ((h = guest_mix(h, one<N>(who)), guest_work(&s, 2000)), ...);
  return h;
}
int main() {
  std::vector<std::thread> t;
  uint64_t h[6];
  for (int i = 0; i < 6; i++)
    t.emplace_back([i, &h] { h[i] = all(i, std::make_integer_sequence<int, 64>()); });
  for (auto &x : t)
    x.join();
  for (int i = 1; i < 6; i++)
    CHECK(h[i] == h[0]);
  printf("order %016llx\n", (unsigned long long)order);
  guest_ok("cpp_statics");
}
