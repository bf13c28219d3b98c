// build:
// deterministic
// loses
// Proves: whoever is copied while a child lives knows that it has still to wait for it, also where the one it is a copy of
// led when the child was born. (A copy of a leader did not: a child of whom the leader had been told, lost before it
// logged that, was gone for good.)
#include "guest.h"
#include <sys/wait.h>
static void lines(int n, const char *whose) {
  for (int i = 0; i < n; i++) {
    char line[40];
    int len = snprintf(line, sizeof line, "%s %d\n", whose, i);
    CHECK(write(1, line, len) == len);
    usleep(5000);
  }
}
int main(void) {
  lines(60, "parent");
  pid_t p = fork();
  CHECK(p >= 0);
  if (!p) {
    lines(100, "child");
    _exit(7);
  }
  int status;
  CHECK(waitpid(p, &status, 0) == p && WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK(waitpid(-1, &status, 0) == -1);
  guest_ok("reaped_by_copy");
}
