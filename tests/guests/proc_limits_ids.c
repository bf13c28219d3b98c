// build:
// deterministic
// loses
// Proves: session, group, limits, umask, priority, names, prctl, affinity.
#include "guest.h"
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
int main(void) {
  struct rlimit r;
  CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur >= 64);
  r.rlim_cur = 60;
  CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0 && dup2(1, 100) == -1);
  CHECK(umask(027) <= 0777 && umask(0) == 027);
  CHECK(prctl(PR_SET_NAME, "guest-name") == 0);
  char name[16];
  CHECK(prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "guest-name"));
  struct utsname u;
  CHECK(uname(&u) == 0 && !strcmp(u.sysname, "Linux"));
  cpu_set_t set;
  CHECK(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 1);
  CHECK(sched_setaffinity(0, sizeof set, &set) == 0 && sched_yield() == 0);
  CHECK(setpriority(PRIO_PROCESS, 0, 5) == 0 && getpriority(PRIO_PROCESS, 0) == 5);
  CHECK(getuid() == geteuid() && getgid() == getegid());
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK(setsid() == getpid() && getpgrp() == getpid() && getsid(0) == getpid());
    _exit(0);
  }
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  guest_ok("proc_limits_ids");
}
