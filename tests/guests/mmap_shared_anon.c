// build:
// deterministic
// loses
// Proves: shared anonymous memory joins the processes of one replica.
#include "guest.h"
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  int *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
  CHECK(p != MAP_FAILED);
  for (int i = 0; i < 5; i++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      p[i] = 100 + i;
      p[10]++;
      _exit(0);
    }
    int st;
    CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  }
  for (int i = 0; i < 5; i++)
    CHECK(p[i] == 100 + i);
  CHECK(p[10] == 5);
  guest_ok("mmap_shared_anon");
}
