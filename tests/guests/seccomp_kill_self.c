// build: -pthread
// args: process
// args: thread
// exit: SIGSYS
// deterministic
// loses
// Proves: a program that its filter kills ends by SIGSYS.
#include "guest.h"
#include "seccomp.h"
int main(int argc, char **argv) {
  unsigned action = argc > 1 && strcmp(argv[1], "thread") == 0 ? SECCOMP_RET_KILL_THREAD : SECCOMP_RET_KILL_PROCESS;
  struct sock_filter code[] = {LOAD(nr), IF(__NR_sync, action), SAY(SECCOMP_RET_ALLOW)};
  no_new_privs();
  INSTALL(code);
  guest_ok("seccomp_kill_self");
  syscall(SYS_sync);
  return 1;
}
