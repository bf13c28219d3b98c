// build:
// deterministic
// loses
// Proves: two hundred short children in a row and sixteen at once; ids of the
// namespace agree (parity of order is checked, not the number).
#include "guest.h"
#include <sys/wait.h>
int main(void) {
  for (int i = 0; i < 200; i++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
      _exit(i & 63);
    int st;
    CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == (i & 63));
  }
  pid_t p[16];
  for (int i = 0; i < 16; i++) {
    p[i] = fork();
    CHECK(p[i] >= 0);
    if (p[i] == 0) {
      uint64_t s = i + 1;
      guest_work(&s, 200000);
      char line[32];
      int n = snprintf(line, sizeof line, "x");
      CHECK(write(1, line, n) == n);
      _exit(0);
    }
  }
  for (int i = 15; i >= 0; i--) {
    int st;
    CHECK(waitpid(p[i], &st, 0) == p[i] && st == 0);
  }
  puts("");
  guest_ok("fork_many");
}
