// build:
// deterministic
// loses
// Proves: the three calls of the vsyscall page, which old static programs make, give what the leader
// got. (The monitor sent such a thread elsewhere, for which the kernel ended it with SIGSYS.)
#include "guest.h"
#include <sys/time.h>
#include <time.h>
typedef long call(void *, void *, void *);
static int has_page(void) {
  char line[256];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(maps);
  while (fgets(line, sizeof line, maps))
    found |= strstr(line, "[vsyscall]") != NULL;
  fclose(maps);
  return found;
}
int main(void) {
  if (!has_page()) {
    printf("SKIP: this kernel has no vsyscall page\n");
    guest_ok("time_vsyscall");
    return 0;
  }
  call *page = (call *)0xffffffffff600000;
  call *now = (call *)0xffffffffff600400;
  call *cpu = (call *)0xffffffffff600800;
  unsigned sum = 0;
  for (int i = 0; i < 50; i++) {
    struct timeval v = {0, 0};
    unsigned core = ~0u, node = ~0u;
    time_t before = time(NULL), seen = 0;
    CHECK(page(&v, NULL, NULL) == 0 && v.tv_sec >= before);
    CHECK(now(&seen, NULL, NULL) == seen && seen >= before);
    CHECK(cpu(&core, &node, NULL) == 0 && core < 65536);
    // The replicas must have seen the same.
    sum = sum * 31 + (unsigned)v.tv_usec + (unsigned)seen + core;
    FILE *out = fopen("/dev/null", "w");
    fprintf(out, "%u", sum);
    fclose(out);
  }
  guest_ok("time_vsyscall");
}
