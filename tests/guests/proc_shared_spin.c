// build: -O1
// deterministic
// loses
// Proves: how often a process has to try before it gets a lock that another process has is its own replica's affair with clocks
// (a look for signals came behind so many atomic instructions, in one replica and not in the other).
#include "guest.h"
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  struct {
    int lock, n;
  } *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(s != MAP_FAILED);
  pid_t pid = fork();
  CHECK(pid >= 0);
  uint64_t seed = 1;
  for (int i = 0; i < 2000; i++) {
    for (int none = 0; !__atomic_compare_exchange_n(&s->lock, &none, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);)
      none = 0;
    guest_work(&seed, 500);
    s->n++;
    __atomic_store_n(&s->lock, 0, __ATOMIC_SEQ_CST);
  }
  if (pid == 0)
    _exit(0);
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0 && s->n == 4000);
  guest_ok("proc_shared_spin");
}
