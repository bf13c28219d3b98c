// build: -fopenmp
// beyond
// descends
// Proves: libgomp's own futex barriers and locks: parallel for, reduction,
// critical, dynamic schedule (who did what is hashed and printed). Plain loads
// decide inside libgomp.
#include "guest.h"
#include <omp.h>
int main(void) {
  long sum = 0;
  uint64_t order = 0;
  omp_set_num_threads(4);
  for (int round = 0; round < 20; round++) {
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 10000; i++)
      sum += i;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < 100; i++) {
      uint64_t s = i + 1;
      guest_work(&s, 2000);
#pragma omp critical
      order = guest_mix(order, i * 4 + omp_get_thread_num());
    }
  }
  CHECK(sum == 20L * 49995000);
  printf("order %016llx\n", (unsigned long long)order);
  guest_ok("th_openmp");
}
