// build: -fopenmp
// loses
// Proves: loops that OpenMP divides by a static schedule, with a barrier behind each, go on when a replica
// is lost.
#include "guest.h"
#include <omp.h>

enum { CELLS = 1 << 14 };
static uint64_t a[CELLS], b[CELLS];

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 100;
  omp_set_dynamic(0);
  omp_set_num_threads(4);
  for (int r = 1; r <= rounds; r++) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < CELLS; i++)
      b[i] = guest_mix(a[i], guest_mix(a[(i + 1) % CELLS], a[(i + CELLS - 1) % CELLS]));
#pragma omp parallel for schedule(static)
    for (int i = 0; i < CELLS; i++)
      a[i] = guest_mix(b[i], i);
    if (r % 500 == 0) {
      printf("%d %016llx\n", r, (unsigned long long)a[0]);
      fflush(stdout);
    }
  }
  printf("%016llx\n", (unsigned long long)guest_hash(1, a, sizeof a));
  guest_ok("recover_openmp");
}
