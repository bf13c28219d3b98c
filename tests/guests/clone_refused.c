// build:
// refused: clone
// native: skip
// Proves: children in namespaces of their own, children of the own parent, children named by a descriptor
// and memory without the rest are refused, with a message, and with what programs fall back from.
#include "guest.h"
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
static void refuses(long flags, int with) {
  int word;
  CHECK(syscall(SYS_clone, flags | SIGCHLD, NULL, &word, &word, 0) == -1 && errno == with);
}
int main(void) {
  refuses(CLONE_NEWUSER, EPERM);
  refuses(CLONE_NEWPID, EPERM);
  refuses(CLONE_NEWNS, EPERM);
  refuses(CLONE_NEWNET, EPERM);
  refuses(CLONE_NEWIPC, EPERM);
  refuses(CLONE_NEWUTS, EPERM);
  refuses(CLONE_NEWCGROUP, EPERM);
  refuses(CLONE_PARENT, EINVAL);
  refuses(CLONE_PIDFD, EINVAL);
  refuses(CLONE_VM, EINVAL);
  refuses(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS, EINVAL);
  CHECK(unshare(CLONE_NEWUSER) == -1 && errno == EPERM);
  guest_ok("clone_refused");
}
