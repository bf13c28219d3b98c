// build:
// deterministic
// loses
// Proves: signals that are let in at one moment (unblocked together, in sigsuspend, ppoll and pselect, behind a handler)
// have their frames built before any handler runs: the last one's runs first, under the masks of all, and each frame
// shows the mask that it interrupts. What a handler's sa_mask shuts out waits until that one returns. (They ran one
// behind the other, the first one first.)
#include "guest.h"
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <ucontext.h>

static char text[1 << 14];
static volatile int n, depth, again;

static uint64_t word_of(const sigset_t *s) {
  uint64_t w = 0;
  for (int i = 1; i < 65; i++)
    if (sigismember(s, i) == 1)
      w |= 1ull << (i - 1);
  return w;
}

static void on(int sig, siginfo_t *info, void *context) {
  ucontext_t *uc = context;
  sigset_t now;
  CHECK(info->si_signo == sig && info->si_pid == getpid());
  CHECK(sigprocmask(SIG_BLOCK, NULL, &now) == 0);
  int value = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
  n += snprintf(text + n, sizeof text - n, "%*s%d(%d) frame %llx now %llx\n", 2 * depth, "", sig, value,
                (unsigned long long)word_of(&uc->uc_sigmask), (unsigned long long)word_of(&now));
  depth++;
  if (again && sig == SIGUSR1) {
    // Two more, which wait until this one returns.
    again--;
    raise(SIGUSR1);
    raise(SIGHUP);
  }
  depth--;
}

static void handle(int sig, int flags, int mask) {
  struct sigaction sa = {.sa_sigaction = on, .sa_flags = SA_SIGINFO | flags};
  if (mask)
    sigaddset(&sa.sa_mask, mask);
  CHECK(sigaction(sig, &sa, NULL) == 0);
}

static void send_all(void) {
  union sigval v = {.sival_int = 7};
  CHECK(!raise(SIGUSR2) && !kill(getpid(), SIGTERM) && !raise(SIGUSR1) && !kill(getpid(), SIGHUP));
  CHECK(!sigqueue(getpid(), SIGRTMIN + 1, v));
  v.sival_int = 8;
  CHECK(!sigqueue(getpid(), SIGRTMIN + 1, v) && !raise(SIGRTMIN) && !raise(SIGSEGV));
}

static void let_in(int how, const sigset_t *within, const sigset_t *none) {
  struct timespec t = {20, 0};
  switch (how) {
  case 0:
    CHECK(sigprocmask(SIG_SETMASK, none, NULL) == 0);
    break;
  case 1:
    CHECK(sigsuspend(within) == -1 && errno == EINTR);
    break;
  case 2:
    CHECK(ppoll(NULL, 0, &t, within) == -1 && errno == EINTR);
    break;
  case 3:
    CHECK(pselect(0, NULL, NULL, NULL, &t, within) == -1 && errno == EINTR);
    break;
  default:
    // (Behind a handler.)
    again = 1;
    CHECK(sigprocmask(SIG_SETMASK, none, NULL) == 0);
  }
}

int main(void) {
  for (int round = 0; round < 3; round++)
    for (int how = 0; how < 5; how++) {
      handle(SIGHUP, 0, round == 1 ? SIGUSR1 : 0);
      handle(SIGUSR1, round == 2 ? SA_NODEFER : SA_RESTART, round == 1 ? SIGUSR2 : 0);
      handle(SIGUSR2, 0, round ? SIGTERM : 0);
      handle(SIGTERM, 0, round == 2 ? SIGRTMIN : 0);
      handle(SIGSEGV, 0, round == 1 ? SIGHUP : 0);
      handle(SIGRTMIN, 0, round == 1 ? SIGRTMIN + 1 : 0);
      handle(SIGRTMIN + 1, round == 2 ? SA_NODEFER : 0, 0);
      sigset_t all, none, within, after;
      sigfillset(&all);
      sigdelset(&all, SIGTRAP); // (what makes Geryon fail at a point in the tests)
      sigemptyset(&none);
      sigaddset(&none, SIGWINCH);
      sigemptyset(&within);
      sigaddset(&within, SIGURG);
      if (round == 2)
        sigaddset(&within, SIGUSR2);
      CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
      send_all();
      n = 0;
      let_in(how, &within, &none);
      CHECK(sigprocmask(SIG_SETMASK, &none, &after) == 0);
      printf("%d %d after %llx\n%s", round, how, (unsigned long long)word_of(&after), text);
      fflush(stdout);
    }
  guest_ok("sig_together");
}
