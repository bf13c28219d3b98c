// build:
// deterministic
// loses
// Proves: vfork suspends the parent until exec or _exit of the child.
#include "guest.h"
#include <sys/wait.h>
int main(void) {
  volatile int seen = 0;
  pid_t pid = vfork();
  CHECK(pid >= 0);
  if (pid == 0) {
    seen = 1;
    _exit(5);
  }
  int st;
  CHECK(seen == 1 && waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 5);
  for (volatile int i = 0; i < 5; i++) {
    pid = vfork();
    CHECK(pid >= 0);
    if (pid == 0) {
      execl("/bin/echo", "echo", "from the child", (char *)NULL);
      _exit(127);
    }
    CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  }
  pid = vfork();
  if (pid == 0) {
    execl("/no/such/program", "x", (char *)NULL);
    _exit(errno == ENOENT ? 9 : 10);
  }
  CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 9);
  guest_ok("vfork_exec");
}
