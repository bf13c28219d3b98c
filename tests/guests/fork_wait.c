// build:
// deterministic
// descends
// loses
// Proves: children of children, exit codes, all forms of wait, getppid.
#include "guest.h"
#include <sys/resource.h>
#include <sys/wait.h>
static int tree(int depth) {
  int sum = 1;
  if (depth == 0)
    return sum;
  for (int i = 0; i < 2; i++) {
    pid_t me = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      CHECK(getppid() == me);
      _exit(tree(depth - 1));
    }
    int st;
    CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
    sum += WEXITSTATUS(st);
  }
  return sum;
}
int main(void) {
  CHECK(tree(3) == 15);
  for (int i = 0; i < 5; i++)
    if (fork() == 0)
      _exit(i);
  int sum = 0, st;
  struct rusage ru;
  while (wait4(-1, &st, 0, &ru) > 0)
    sum += WEXITSTATUS(st);
  CHECK(errno == ECHILD && sum == 10);
  pid_t pid = fork();
  if (pid == 0)
    exit(7);
  siginfo_t si;
  CHECK(waitid(P_PID, pid, &si, WEXITED | WNOWAIT) == 0 && si.si_status == 7);
  CHECK(waitid(P_PID, pid, &si, WEXITED) == 0 && si.si_pid == pid);
  guest_ok("fork_wait");
}
