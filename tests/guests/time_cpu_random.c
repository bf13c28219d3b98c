// build: -mrdrnd -mrdseed
// beyond
// Proves: RDRAND and RDSEED behind a CPUID check, as a library would use them,
// give one value to all replicas (hidden by CPUID faulting where the CPU has
// it), or the run stops before they get out.
#include "guest.h"
#include <cpuid.h>
#include <immintrin.h>
int main(void) {
  unsigned a, b, c, d;
  CHECK(__get_cpuid(1, &a, &b, &c, &d));
  unsigned long long v = 0;
  if (c & bit_RDRND) {
    for (int i = 0; i < 100 && !_rdrand64_step(&v); i++)
      ;
    printf("rdrand %016llx\n", v);
  }
  CHECK(__get_cpuid_count(7, 0, &a, &b, &c, &d));
  if (b & bit_RDSEED) {
    for (int i = 0; i < 100 && !_rdseed64_step(&v); i++)
      ;
    printf("rdseed %016llx\n", v);
  }
  guest_ok("time_cpu_random");
}
