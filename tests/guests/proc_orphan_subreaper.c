// build:
// deterministic
// loses
// Proves: an orphan is reparented to the subreaper and reaped there.
#include "guest.h"
#include <sys/prctl.h>
#include <sys/wait.h>
int main(void) {
  CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    if (fork() == 0) {
      usleep(30000);
      _exit(21);
    }
    _exit(20);
  }
  int st, sum = 0;
  while (wait(&st) > 0)
    sum += WEXITSTATUS(st);
  CHECK(sum == 41);
  guest_ok("proc_orphan_subreaper");
}
