// build:
// deterministic
// loses
// Proves: less common descriptors: inotify, memfd, signalfd, pidfd.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
int main(void) {
  const char *path = guest_tmp("inotify");
  int in = inotify_init1(IN_CLOEXEC);
  int fd = open(path, O_CREAT | O_RDWR, 0600);
  CHECK(in >= 0 && fd >= 0 && inotify_add_watch(in, path, IN_MODIFY) == 1);
  CHECK(write(fd, "x", 1) == 1);
  union {
    struct inotify_event e;
    char b[512];
  } ev;
  CHECK(read(in, &ev, sizeof ev) >= (ssize_t)sizeof ev.e && ev.e.wd == 1);
  int m = memfd_create("guest", 0);
  CHECK(m >= 0 && write(m, "memfd", 5) == 5);
  char *p = mmap(NULL, 5, PROT_READ, MAP_PRIVATE, m, 0);
  CHECK(p != MAP_FAILED && !memcmp(p, "memfd", 5));
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &s, NULL) == 0);
  int sf = signalfd(-1, &s, 0);
  CHECK(sf >= 0 && raise(SIGUSR1) == 0);
  struct signalfd_siginfo si;
  CHECK(read(sf, &si, sizeof si) == sizeof si && si.ssi_signo == SIGUSR1);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0)
    _exit(3);
  int pf = syscall(SYS_pidfd_open, pid, 0);
  struct pollfd pl = {pf, POLLIN, 0};
  CHECK(pf >= 0 && poll(&pl, 1, 5000) == 1);
  siginfo_t info;
  CHECK(waitid(P_PIDFD, pf, &info, WEXITED) == 0 && info.si_status == 3);
  CHECK(unlink(path) == 0);
  guest_ok("io_inotify_memfd");
}
