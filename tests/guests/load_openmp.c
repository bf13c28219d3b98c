// build: -fopenmp
// env: OMP_NUM_THREADS=4
// descends
// loses
// ascends
// Proves: which thread gets which part of a loop, or which task, is decided by plain loads of libgomp's; they are
// repeated, and so are the results of its futex calls.
#include "guest.h"
#include <omp.h>

enum { ROUNDS = 12, LOOP = 400 };
static uint64_t got[4];

static int fib(int n) {
  if (n < 2)
    return n;
  if (n < 8)
    return fib(n - 1) + fib(n - 2);
  int a, b;
#pragma omp task shared(a)
  a = fib(n - 1);
#pragma omp task shared(b)
  b = fib(n - 2);
#pragma omp taskwait
  got[omp_get_thread_num()] = guest_mix(got[omp_get_thread_num()], (uint64_t)n);
  return a + b;
}

int main(void) {
  long sum = 0;
  int f = 0;
  for (int r = 0; r < ROUNDS; r++) {
#pragma omp parallel for schedule(dynamic, 3) reduction(+ : sum)
    for (int i = 0; i < LOOP; i++) {
      sum += i;
      got[omp_get_thread_num()] = guest_mix(got[omp_get_thread_num()], (uint64_t)i);
    }
#pragma omp parallel for schedule(guided) reduction(+ : sum)
    for (int i = 0; i < LOOP; i++) {
      sum += i;
      got[omp_get_thread_num()] = guest_mix(got[omp_get_thread_num()], (uint64_t)i);
    }
#pragma omp parallel
#pragma omp single
    f = fib(14);
#pragma omp parallel for
    for (int i = 0; i < 40; i++) {
#pragma omp critical
      got[0] = guest_mix(got[0], (uint64_t)i);
    }
  }
  CHECK(f == 377);
  CHECK(sum == 2L * ROUNDS * LOOP * (LOOP - 1) / 2);
  // To where the replicas are compared, and nobody reads it.
  FILE *out = fopen("/dev/null", "w");
  CHECK(out);
  for (int i = 0; i < 4; i++)
    fprintf(out, "%016llx\n", (unsigned long long)got[i]);
  CHECK(!fclose(out));
  guest_ok("load_openmp");
}
