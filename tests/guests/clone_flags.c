// build:
// deterministic
// loses
// Proves: flags of clone for processes: ids stored in parent and child, a word cleared at the end, a
// thread pointer of its own, another signal at the end, flags that concern tracers, and combinations that
// the kernel refuses. (A child made with CLONE_UNTRACED left the monitor; CLONE_SETTLS and the ids of a
// vfork were dropped without a word.)
#include "guest.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static int ptid, ctid;
static pid_t make(long flags, long tls) { return syscall(SYS_clone, flags, NULL, &ptid, &ctid, tls); }

static int ended(pid_t pid) {
  int st = -1;
  CHECK(waitpid(pid, &st, __WALL) == pid);
  return WIFEXITED(st) ? WEXITSTATUS(st) : -1;
}

static int sees_ids(void *arg) {
  (void)arg;
  pid_t own = syscall(SYS_getpid);
  _exit(ptid == own && ctid == own ? 5 : 6);
}

int main(void) {
  pid_t pid = make(CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0);
  if (pid == 0)
    _exit(ctid == getpid() ? 4 : 1);
  CHECK(pid > 0 && ptid == pid && ctid == 0 && ended(pid) == 4);

  char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ptid = ctid = 0;
  pid = clone(sees_ids, stack + 65536,
              CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, NULL, &ptid,
              NULL, &ctid);
  CHECK(pid > 0 && ptid == pid && ctid == pid && ended(pid) == 5);

  // The word is cleared in the parent's memory, which the child shares.
  ctid = 77;
  pid = clone(sees_ids, stack + 65536, CLONE_VM | CLONE_VFORK | CLONE_CHILD_CLEARTID | SIGCHLD, NULL,
              NULL, NULL, &ctid);
  CHECK(pid > 0 && ended(pid) == 6 && ctid == 0);

  long area[8192 / sizeof(long)];
  memset(area, 0, sizeof area);
  area[512] = (long)&area[512];
  pid = make(CLONE_SETTLS | SIGCHLD, (long)&area[512]);
  if (pid == 0) {
    long self;
    __asm__ volatile("mov %%fs:0, %0" : "=r"(self));
    __asm__ volatile("syscall" ::"a"(SYS_exit_group), "D"(self == (long)&area[512] ? 8 : 9) : "rcx", "r11");
  }
  CHECK(pid > 0 && ended(pid) == 8);

  for (int i = 0; i < 3; i++) {
    const long flags[] = {CLONE_UNTRACED, CLONE_PTRACE, 0x400000 /* detached */ | CLONE_SYSVSEM};
    pid = make(flags[i] | SIGCHLD, 0);
    if (pid == 0)
      _exit(fork() >= 0 ? 10 + i : 1);
    CHECK(pid > 0 && ended(pid) == 10 + i);
  }
  // No signal at its end, and another one.
  pid = make(0, 0);
  if (pid == 0)
    _exit(20);
  CHECK(pid > 0 && waitpid(pid, NULL, 0) == -1 && errno == ECHILD && ended(pid) == 20);
  signal(SIGUSR1, SIG_IGN);
  pid = make(SIGUSR1, 0);
  if (pid == 0)
    _exit(21);
  CHECK(pid > 0 && ended(pid) == 21);

  CHECK(make(CLONE_SIGHAND | SIGCHLD, 0) == -1 && errno == EINVAL);
  CHECK(make(CLONE_THREAD | SIGCHLD, 0) == -1 && errno == EINVAL);
  CHECK(make(CLONE_THREAD | CLONE_SIGHAND | SIGCHLD, 0) == -1 && errno == EINVAL);
  guest_ok("clone_flags");
}
