// build: -std=c++20
// deterministic
// descends
// loses
// Proves: std::thread, mutex, unique_lock, condition_variable, call_once,
// async, shared_mutex, shared_ptr across threads, exceptions from threads.
#include "guest.h"
#include <condition_variable>
#include <deque>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <vector>
static std::mutex m;
static std::condition_variable cv;
static std::deque<std::shared_ptr<int>> queue;
static std::once_flag once;
static int inits;
static int consume() {
  std::call_once(once, [] { inits++; });
  int sum = 0;
  for (;;) {
    std::unique_lock<std::mutex> l(m);
    cv.wait(l, [] { return !queue.empty(); });
    auto p = queue.front();
    queue.pop_front();
    if (!p)
      return sum;
    sum += *p;
  }
}
int main() {
  std::vector<std::future<int>> f;
  for (int i = 0; i < 4; i++)
    f.push_back(std::async(std::launch::async, consume));
  for (int i = 1; i <= 2000; i++) {
    std::lock_guard<std::mutex> l(m);
    queue.push_back(std::make_shared<int>(i));
    cv.notify_one();
  }
  for (int i = 0; i < 4; i++) {
    std::lock_guard<std::mutex> l(m);
    queue.push_back(nullptr);
    cv.notify_all();
  }
  int sum = 0;
  for (auto &x : f)
    sum += x.get();
  CHECK(sum == 2000 * 2001 / 2 && inits == 1);
  std::shared_mutex sm;
  auto shared = std::make_shared<std::vector<int>>(1000, 1);
  std::vector<std::thread> t;
  long total = 0;
  for (int i = 0; i < 4; i++)
    t.emplace_back([copy = shared, &sm, &total, i] {
      for (int k = 0; k < 500; k++) {
        auto again = copy;
        if ((k + i) % 10 == 0) {
          std::unique_lock<std::shared_mutex> l(sm);
          total += std::accumulate(again->begin(), again->end(), 0);
        } else {
          std::shared_lock<std::shared_mutex> l(sm);
          CHECK(again->size() == 1000);
        }
      }
    });
  for (auto &x : t)
    x.join();
  CHECK(total == 4 * 50 * 1000 && shared.use_count() == 1);
  auto bad = std::async(std::launch::async, []() -> int { throw std::runtime_error("from a thread"); });
  try {
    bad.get();
    CHECK(!"no exception");
  } catch (const std::runtime_error &e) {
    std::cout << "caught " << e.what() << std::endl;
  }
  guest_ok("cpp_threads");
}
