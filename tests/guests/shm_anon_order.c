// build:
// Proves: processes that share anonymous memory come to it in the leader's order, whatever they do there:
// atomics, plain loads and stores. (Nothing ordered them: the counts that they print differed.)
#include "guest.h"
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  volatile uint64_t *p =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  pid_t pids[3];
  for (int c = 0; c < 3; c++) {
    pids[c] = fork();
    CHECK(pids[c] >= 0);
    if (pids[c] == 0) {
      for (int i = 0; i < 30; i++) {
        for (int k = 0; k < 1000; k++)
          p[0] = guest_mix(p[0], c);
        uint64_t t = __atomic_add_fetch((uint64_t *)&p[1], 1, __ATOMIC_SEQ_CST);
        char line[80];
        int n = snprintf(line, sizeof line, "%d %llu %llx\n", c, (unsigned long long)t,
                         (unsigned long long)p[0]);
        CHECK(write(1, line, n) == n);
      }
      _exit(0);
    }
  }
  for (int c = 0; c < 3; c++) {
    int st;
    CHECK(waitpid(pids[c], &st, 0) == pids[c] && st == 0);
  }
  CHECK(p[1] == 90);
  guest_ok("shm_anon_order");
}
