// build:
// deterministic
// loses
// Proves: of several filters the gravest verdict holds, and of equal ones that of the newest; a filter says what the next
// one may be; many of them are one after the other.
#include "guest.h"
#include "seccomp.h"
#include <signal.h>
#include <sys/wait.h>

static void say(int nr, unsigned what) {
  struct sock_filter code[] = {LOAD(nr), IF(nr, what), SAY(SECCOMP_RET_ALLOW)};
  INSTALL(code);
}

static int errno_of(int nr) {
  errno = 0;
  return syscall(nr) == -1 ? errno : 0;
}

static void traps(int signal) {
  (void)signal;
  _exit(5);
}

static int in_child(int nr) {
  int st;
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    signal(SIGSYS, traps);
    _exit(errno_of(nr) == 0 ? 0 : 6);
  }
  CHECK(waitpid(pid, &st, 0) == pid);
  return WIFSIGNALED(st) ? 100 + WTERMSIG(st) : WEXITSTATUS(st);
}

int main(void) {
  no_new_privs();
  say(SYS_sync, SECCOMP_RET_ERRNO | 11);
  CHECK(errno_of(SYS_sync) == 11);
  // The newest of equals, whatever its number.
  say(SYS_sync, SECCOMP_RET_ERRNO | 30);
  CHECK(errno_of(SYS_sync) == 30);
  say(SYS_sync, SECCOMP_RET_ERRNO | 12);
  CHECK(errno_of(SYS_sync) == 12);
  // Less grave ones change nothing.
  say(SYS_sync, SECCOMP_RET_LOG);
  say(SYS_sync, SECCOMP_RET_TRACE | 9);
  say(SYS_sync, SECCOMP_RET_ALLOW);
  CHECK(errno_of(SYS_sync) == 12);
  CHECK(in_child(SYS_sync) == 6);
  // Graver ones do.
  say(SYS_sync, SECCOMP_RET_TRAP);
  CHECK(in_child(SYS_sync) == 5);
  say(SYS_sync, SECCOMP_RET_KILL_THREAD);
  CHECK(in_child(SYS_sync) == 100 + SIGSYS);
  say(SYS_sync, SECCOMP_RET_KILL_PROCESS);
  say(SYS_sync, SECCOMP_RET_ERRNO | 1);
  CHECK(in_child(SYS_sync) == 100 + SIGSYS);

  for (int i = 0; i < 200; i++)
    say(SYS_getpgrp, SECCOMP_RET_ERRNO | (i + 1));
  CHECK(errno_of(SYS_getpgrp) == 200);
  // From here on nobody may add one.
  say(SYS_seccomp, SECCOMP_RET_ERRNO | 99);
  struct sock_filter code[] = {SAY(SECCOMP_RET_ALLOW)};
  struct sock_fprog p = {1, code};
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) == -1 && errno == 99);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) == 0);
  // Large ones, until the kernel's limit is reached.
  static struct sock_filter large[4096];
  for (int i = 0; i < 4095; i++)
    large[i] = (struct sock_filter)LOAD(nr);
  large[4095] = (struct sock_filter)SAY(SECCOMP_RET_ALLOW);
  struct sock_fprog l = {4096, large};
  int installed = 0;
  while (installed < 20 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &l) == 0)
    installed++;
  CHECK(errno == ENOMEM && installed >= 3 && installed < 8);
  guest_ok("seccomp_stack");
}
