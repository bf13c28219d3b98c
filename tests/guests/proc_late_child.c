// build:
// deterministic
// loses
// Proves: a child that its parent leaves at once, by exit or by exec, runs to
// its end and is reaped (double forks of daemons, background jobs before exec).
#include "guest.h"
#include <sys/prctl.h>
#include <sys/wait.h>
static int round_of(int how) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    if (fork() == 0)
      _exit(how);
    if (how == 1)
      execl("/bin/true", "true", (char *)NULL);
    _exit(0);
  }
  int st, sum = 0;
  while (wait(&st) > 0) {
    CHECK(WIFEXITED(st));
    sum += WEXITSTATUS(st);
  }
  return sum;
}
int main(void) {
  CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  for (int n = 0; n < 6; n++) {
    CHECK(round_of(1) == 1);
    CHECK(round_of(2) == 2);
  }
  guest_ok("proc_late_child");
}
