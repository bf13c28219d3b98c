// build: -std=c++20
// args: semaphore 300
// args: barrier 300
// args: latch 300
// args: wait 300
// beyond
// descends
// Proves: threads that meet in C++20's semaphores, barriers, latches and waits for an atomic, which sleep in
// the program's own futex calls, go on when a replica is lost, or are stopped with a report. (Plain loads
// decide which atomic instruction libstdc++ executes next.)
#include "guest.h"
#include <atomic>
#include <barrier>
#include <latch>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

enum { THREADS = 4, CELLS = 64, SIZE = THREADS * CELLS };
static uint64_t grid[2][SIZE];
static int rounds;

// One thread's part of one round, then the way in which they meet.
template <class Meet> static void work(int me, Meet meet) {
  uint64_t seed = me + 1;
  for (int r = 0; r < rounds; r++) {
    uint64_t *from = grid[r % 2], *to = grid[(r + 1) % 2];
    for (int i = me * CELLS; i < (me + 1) * CELLS; i++)
      to[i] = guest_mix(from[i], guest_mix(from[(i + 1) % SIZE], from[(i + SIZE - 1) % SIZE]));
    guest_work(&seed, guest_rand(&seed) % 3000);
    meet(me, r);
    if (me == 0 && r % 100 == 99) {
      printf("%d %016llx\n", r + 1, (unsigned long long)to[0]);
      fflush(stdout);
    }
  }
}

template <class Meet> static void run(Meet meet) {
  std::vector<std::thread> all;
  for (int i = 0; i < THREADS; i++)
    all.emplace_back([=] { work(i, meet); });
  for (auto &t : all)
    t.join();
}

// The first one collects the others, and lets them go.
static std::counting_semaphore<> arrived(0), leave[THREADS]{
    std::counting_semaphore<>(0), std::counting_semaphore<>(0), std::counting_semaphore<>(0),
    std::counting_semaphore<>(0)};
static std::barrier<> all(THREADS);
static std::vector<std::unique_ptr<std::latch>> latches;
static std::atomic<int> waiting{0}, generation{0};

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "barrier";
  rounds = argc > 2 ? atoi(argv[2]) : 300;
  if (!strcmp(how, "semaphore")) {
    run([](int me, int) {
      if (me == 0) {
        for (int i = 1; i < THREADS; i++)
          arrived.acquire();
        for (int i = 1; i < THREADS; i++)
          leave[i].release();
      } else {
        arrived.release();
        leave[me].acquire();
      }
    });
  } else if (!strcmp(how, "barrier")) {
    run([](int, int) { all.arrive_and_wait(); });
  } else if (!strcmp(how, "latch")) {
    for (int r = 0; r < rounds; r++)
      latches.push_back(std::make_unique<std::latch>(THREADS));
    run([](int, int r) { latches[r]->arrive_and_wait(); });
  } else if (!strcmp(how, "wait")) {
    run([](int, int r) {
      if (waiting.fetch_add(1) == THREADS - 1) {
        waiting.store(0);
        generation.store(r + 1);
        generation.notify_all();
      } else {
        while (generation.load() == r)
          generation.wait(r);
      }
    });
  } else
    return 2;
  printf("%016llx\n", (unsigned long long)guest_hash(1, grid, sizeof grid));
  guest_ok("recover_cpp20");
}
