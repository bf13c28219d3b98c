// build:
// deterministic
// loses
// Proves: a handler that runs in a call with a mask of its own (ppoll, pselect, sigsuspend,
// epoll_pwait, epoll_pwait2) sees that mask, its sa_mask and its own signal; its frame shows the mask
// of before, which is in force again behind it, or what the handler has made of it. (It saw the
// thread's mask, with any number of replicas.)
#include "guest.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static volatile uint64_t in_handler, in_frame, change;
static volatile int hits;

static uint64_t word_of(const sigset_t *s) {
  uint64_t w = 0;
  for (int i = 1; i < 65; i++)
    if (sigismember(s, i) == 1)
      w |= 1ull << (i - 1);
  return w;
}

static uint64_t mask_now(void) {
  sigset_t s;
  CHECK(sigprocmask(SIG_BLOCK, NULL, &s) == 0);
  return word_of(&s);
}

static void on(int sig, siginfo_t *info, void *context) {
  (void)info;
  CHECK(sig == SIGALRM);
  ucontext_t *uc = context;
  hits++;
  in_handler = mask_now();
  in_frame = word_of(&uc->uc_sigmask);
  if (change)
    CHECK(sigaddset(&uc->uc_sigmask, (int)change) == 0);
}

static void arm(void) {
  struct itimerval it = {{0, 0}, {0, 20000}};
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
}

static void wait_in(int which, const sigset_t *mask, int epfd) {
  struct epoll_event e;
  struct timespec t = {20, 0};
  switch (which) {
  case 0:
    CHECK(ppoll(NULL, 0, &t, mask) == -1 && errno == EINTR);
    break;
  case 1:
    CHECK(pselect(0, NULL, NULL, NULL, &t, mask) == -1 && errno == EINTR);
    break;
  case 2:
    CHECK(sigsuspend(mask) == -1 && errno == EINTR);
    break;
  case 3:
    CHECK(epoll_pwait(epfd, &e, 1, 20000, mask) == -1 && errno == EINTR);
    break;
  default:
    CHECK(syscall(441, epfd, &e, 1, &t, mask, 8) == -1 && errno == EINTR);
  }
}

static const char *const names[] = {"ppoll", "pselect", "sigsuspend",
                                    "epoll_pwait", "epoll_pwait2"};

int main(void) {
  int epfd = epoll_create1(0);
  CHECK(epfd >= 0);
  for (int flags = 0; flags < 3; flags++)
    for (int which = 0; which < 5; which++)
      for (int outside = 0; outside < 2; outside++) {
        // Outside the call the signal is blocked, or not; inside, others are.
        sigset_t before, inside;
        sigemptyset(&before);
        sigaddset(&before, SIGUSR1);
        if (outside)
          sigaddset(&before, SIGALRM);
        CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
        sigemptyset(&inside);
        sigaddset(&inside, SIGUSR2);
        sigaddset(&inside, SIGRTMIN + 3);
        struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};
        sigaddset(&sa.sa_mask, SIGWINCH);
        if (flags == 1)
          sa.sa_flags |= SA_NODEFER;
        if (flags == 2)
          sa.sa_flags |= SA_RESTART;
        change = which == 0 ? SIGHUP : 0;
        CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
        in_handler = in_frame = 0;
        int had = hits;
        arm();
        wait_in(which, &inside, epfd);
        CHECK(hits == had + 1);
        printf("%s %d %d: handler %llx frame %llx after %llx\n", names[which], flags, outside,
               (unsigned long long)in_handler, (unsigned long long)in_frame,
               (unsigned long long)mask_now());
      }
  // A signal that the call shuts out does not end it.
  sigset_t none, shut;
  sigemptyset(&none);
  sigemptyset(&shut);
  sigaddset(&shut, SIGALRM);
  change = 0;
  CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
  for (int i = 0; i < 3; i++) {
    int had = hits;
    struct timespec t = {0, 60000000};
    arm();
    CHECK(ppoll(NULL, 0, &t, &shut) == 0);
    CHECK(hits == had + 1);
    printf("shut out: handler %llx frame %llx\n", (unsigned long long)in_handler,
           (unsigned long long)in_frame);
  }
  guest_ok("sig_call_mask");
}
