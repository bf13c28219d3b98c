// build:
// args: 100 1
// deterministic
// loses
// Proves: processes that wake each other by signals, which they take from a descriptor that an epoll instance
// watches, go on to do so. Tests of recovery kill replicas meanwhile. (An epoll instance waits for the signals of
// the process that has added the descriptor: behind a takeover none came. One of the signals ends who does not block it,
// the other one does nothing; each comes once.)
#include "guest.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
static int instance, descriptor;
static void wait_for(unsigned signal) {
  struct epoll_event e;
  int n;
  do
    n = epoll_wait(instance, &e, 1, 10000);
  while (n < 0 && errno == EINTR);
  CHECK(n == 1 && e.data.u64 == 0x123456789abcull);
  struct signalfd_siginfo info;
  CHECK(read(descriptor, &info, sizeof info) == sizeof info && info.ssi_signo == signal);
}
int main(int argc, char **argv) {
  CHECK(argc == 3);
  int rounds = atoi(argv[1]), nap_ms = atoi(argv[2]);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGURG);
  sigaddset(&set, SIGTERM);
  CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
  pid_t parent = getpid(), child = fork();
  CHECK(child >= 0);
  instance = epoll_create1(EPOLL_CLOEXEC);
  descriptor = signalfd(-1, &set, SFD_CLOEXEC);
  struct epoll_event e = {.events = EPOLLIN, .data.u64 = 0x123456789abcull};
  CHECK(instance >= 0 && descriptor >= 0 && !epoll_ctl(instance, EPOLL_CTL_ADD, descriptor, &e));
  for (int i = 0; i < rounds; i++) {
    if (!child) {
      CHECK(!kill(parent, SIGTERM));
      wait_for(SIGURG);
    } else {
      wait_for(SIGTERM);
      usleep(nap_ms * 1000);
      CHECK(!kill(child, SIGURG));
    }
  }
  CHECK(epoll_wait(instance, &e, 1, 0) == 0);
  if (!child)
    _exit(0);
  int status;
  CHECK(waitpid(child, &status, 0) == child && !status);
  guest_ok("recover_watches");
}
