// build:
// args: 4
// deterministic
// loses
// Proves: a descriptor of a process (pidfd_open) names the program's child, whichever replica leads: it is not ready before that
// has ended, also in a set (epoll), and a wait that names it finds it, once. Tests of recovery kill replicas meanwhile.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void round_of(int n) {
  int go[2];
  char c;
  CHECK(pipe(go) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    close(go[1]);
    CHECK(read(go[0], &c, 1) == 1);
    _exit(n);
  }
  int fd = syscall(SYS_pidfd_open, pid, n % 2 ? O_NONBLOCK : 0);
  struct pollfd ready = {fd, POLLIN, 0};
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = n};
  int set = epoll_create1(0);
  siginfo_t info = {0};
  CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
  CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
  CHECK(poll(&ready, 1, 2) == 0 && epoll_wait(set, &event, 1, 2) == 0);
  CHECK(waitid(P_PIDFD, fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0);
  if (n % 2)
    CHECK(waitid(P_PIDFD, fd, &info, WEXITED) == -1 && errno == EAGAIN);
  CHECK(waitid(P_PIDFD, go[0], &info, WEXITED) == -1 && errno == EBADF);
  CHECK(write(go[1], "g", 1) == 1);
  CHECK(poll(&ready, 1, 10000) == 1 && ready.revents & POLLIN);
  CHECK(epoll_wait(set, &event, 1, 10000) == 1 && event.data.u32 == (unsigned)n);
  // (It is ready when it has ended, which its tracer may not have heard of.)
  CHECK(fcntl(fd, F_SETFL, 0) == 0);
  CHECK(waitid(P_PIDFD, fd, &info, WEXITED) == 0 && info.si_pid == pid && info.si_status == n);
  CHECK(waitid(P_PIDFD, fd, &info, WEXITED) == -1 && errno == ECHILD);
  printf("round %d\n", n);
  fflush(stdout);
  close(fd), close(set), close(go[0]), close(go[1]);
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 4;
  for (int n = 0; n < rounds; n++)
    round_of(n);
  guest_ok("recover_pidfd");
}
