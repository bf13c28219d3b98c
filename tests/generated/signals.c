// Signals: how they are handled, blocked, sent and waited for. What handlers have seen is printed behind each step.
#include "calls.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <poll.h>
#include <ucontext.h>
#include <time.h>

enum { KINDS = 65 };
// (In handlers, which may run anywhere.)
static struct seen {
  int count, code, value, on_stack; // (sums)
} seen[KINDS];
static char stack[64 << 10];
// In which order the handlers of what the program sends itself have run, and under which masks.
static uint64_t order = 1;

static void on_signal(int n, siginfo_t *info, void *context) {
  // (When these come is not the program's to say.)
  const uint64_t whenever = 1ul << (SIGALRM - 1) | 1ul << (SIGVTALRM - 1) | 1ul << (SIGIO - 1) | 1ul << (SIGCHLD - 1);
  uint64_t mask;
  char here;
  memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, 8);
  if (!(whenever & 1ul << (n - 1)))
    order = (order ^ n ^ (mask & ~whenever)) * 0x100000001b3ul;
  seen[n].count++;
  seen[n].code += info->si_code;
  seen[n].value += info->si_code == SI_QUEUE ? info->si_value.sival_int : 0;
  seen[n].on_stack += &here >= stack && &here < stack + sizeof stack;
}

void print_signals(void) {
  if (order != 1)
    print("  order %lx\n", order);
  order = 1;
  for (int n = 1; n < KINDS; n++)
    if (seen[n].count != 0) {
      print("  signal %d: %d, code %d, value %d%s\n", n, seen[n].count, seen[n].code, seen[n].value,
            seen[n].on_stack ? ", own stack" : "");
      memset(&seen[n], 0, sizeof seen[n]);
    }
}

// One that may be blocked, handled and sent without an end to all.
static int a_signal(void) { return PICK(int, SIGUSR1, SIGUSR2, SIGURG, SIGWINCH, SIGRTMIN + 1, SIGRTMIN + 2, SIGTERM, SIGPIPE); }

// All of these are handled or ignored before any is sent.
static void handle_all(void) {
  static const int all[] = {SIGUSR1, SIGUSR2, SIGURG, SIGWINCH, SIGTERM, SIGALRM, SIGVTALRM, SIGIO};
  struct sigaction now, handled = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
  for (unsigned i = 0; i < sizeof all / sizeof *all + 2; i++) {
    int n = i < sizeof all / sizeof *all ? all[i] : SIGRTMIN + 1 + (int)(i - sizeof all / sizeof *all);
    if (sigaction(n, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
      CHECK(sigaction(n, &handled, NULL) == 0);
  }
}
void reset_signals(void) {
  sigset_t none;
  sigemptyset(&none);
  CHECK(sigprocmask(SIG_SETMASK, &none, NULL) == 0);
}

static void do_sigaction(void) {
  struct sigaction a = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | FLAGS(SA_RESTART, SA_NODEFER, SA_ONSTACK)};
  if (one_in(4))
    a = (struct sigaction){.sa_handler = SIG_IGN};
  int n = a_signal();
  print("%u sigaction %d: %d\n", me->step, n, sigaction(n, &a, NULL));
  // (The kernel's own structure holds addresses of the program.)
  long kernels[4] = {0};
  long r = syscall(SYS_rt_sigaction, n, NULL, kernels, 8);
  print("  %ld, flags %#lx, mask %#lx\n", r, kernels[1] & ~0x4000000ul, kernels[3]);
}
static void odd_sigaction(void) {
  long a[4] = {1};
  memcpy(me->scratch, a, sizeof a);
  CALL(rt_sigaction, PICK(int, 0, 65, -1, SIGKILL, SIGSTOP, SIGUSR1), one_in(2) ? nowhere() : me->scratch, one_in(2) ? NULL : nowhere(),
       PICK(long, 8, 8, 16, 0));
}
static void do_mask(void) {
  uint64_t set = 0;
  for (int i = 0; i < 3; i++)
    set |= 1ul << (a_signal() - 1);
  memcpy(me->scratch, &set, 8);
  CALL(rt_sigprocmask, PICK(int, SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK, SIG_SETMASK, 3, -1), one_in(4) ? NULL : one_in(6) ? nowhere() : me->scratch,
       one_in(3) ? NULL : at(), one_in(8) ? PICK(long, 0, 4, 16) : 8);
}
static void do_pending(void) { CALL(rt_sigpending, at(), PICK(long, 8, 8, 8, 4, 0, 16)); }
static void do_kill(void) {
  handle_all();
  int n = one_in(10) ? PICK(int, 0, 65, -1) : a_signal();
  switch (below(4)) {
  case 0:
    CALL_HOW(ARGUMENTS, kill, getpid(), n);
    break;
  case 1:
    CALL_HOW(ARGUMENTS, tgkill, getpid(), syscall(SYS_gettid), n);
    break;
  case 2:
    CALL_HOW(ARGUMENTS, tkill, syscall(SYS_gettid), n);
    break;
  default:
    CALL_HOW(ARGUMENTS, tgkill, PICK(long, -1, 0, 0x3fffff0), PICK(long, syscall(SYS_gettid), 0, -1), n);
  }
}
static void do_queue(void) {
  handle_all();
  siginfo_t info = {.si_code = one_in(6) ? PICK(int, SI_USER, 1, SI_TKILL, SI_TIMER) : SI_QUEUE};
  info.si_value.sival_int = (int)below(1000);
  memcpy(me->loose, &info, sizeof info);
  int n = one_in(8) ? 65 : a_signal();
  if (one_in(2))
    CALL_HOW(ARGUMENTS, rt_sigqueueinfo, getpid(), n, one_in(8) ? nowhere() : me->loose);
  else
    CALL_HOW(ARGUMENTS, rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), n, one_in(8) ? nowhere() : me->loose);
}
static void do_timedwait(void) {
  uint64_t set = 0;
  for (int i = 0; i < 4; i++)
    set |= 1ul << (a_signal() - 1);
  memcpy(me->scratch, &set, 8);
  long t[2] = {0, PICK(long, 0, 1000, -1, 1000000000)};
  memcpy(me->loose, t, sizeof t);
  siginfo_t *info = (siginfo_t *)(me->loose + 512);
  memset(info, 0, sizeof *info);
  CALL(rt_sigtimedwait, one_in(8) ? nowhere() : me->scratch, one_in(8) ? nowhere() : one_in(3) ? NULL : (void *)info,
       one_in(8) ? nowhere() : me->loose, one_in(10) ? 4 : 8);
  print("  signal %d, code %d, value %d\n", info->si_signo, info->si_code, info->si_code == SI_QUEUE ? info->si_value.sival_int : 0);
}
static void do_suspend(void) {
  // One that is blocked comes while all are let in.
  handle_all();
  uint64_t none = 0, all = ~0ul, before;
  CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, 8) == 0);
  int n = a_signal();
  struct sigaction now;
  CHECK(sigaction(n, NULL, &now) == 0);
  if (now.sa_handler != SIG_IGN) {
    CHECK(kill(getpid(), n) == 0);
    memcpy(me->scratch, &none, 8);
    CALL(rt_sigsuspend, one_in(6) ? nowhere() : me->scratch, one_in(6) ? 4 : 8);
  }
  CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8) == 0);
}
static void do_altstack(void) {
  stack_t s = {stack, one_in(4) ? PICK(int, SS_DISABLE, 8, 1) : 0, one_in(4) ? PICK(size_t, 0, 100, 2047) : sizeof stack};
  memcpy(me->loose, &s, sizeof s);
  CALL_HOW(VARIES, sigaltstack, one_in(6) ? nowhere() : one_in(3) ? NULL : me->loose, one_in(3) ? at() : NULL);
}
static void do_signalfd(void) {
  uint64_t set = 1ul << (a_signal() - 1) | 1ul << (SIGUSR1 - 1), before;
  CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, &before, 8) == 0);
  memcpy(me->scratch, &set, 8);
  int f = (int)CALL(signalfd4, PICK(int, -1, -1, -1, 0, 150), one_in(6) ? nowhere() : me->scratch, PICK(long, 8, 8, 8, 4), SFD_NONBLOCK | FLAGS(SFD_CLOEXEC, 1));
  if (f >= 0) {
    handle_all();
    CHECK(kill(getpid(), SIGUSR1) == 0);
    struct signalfd_siginfo info;
    CALL_HOW(VARIES, read, f, at(), PICK(long, 128, 127, 0, 300));
    ssize_t n = read(f, &info, sizeof info);
    print("  %zd %u\n", n, n > 0 ? info.ssi_signo : 0);
    close(f);
  }
  CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8) == 0);
}
static void do_fault(void) {
  // An access that is none comes to a handler, which goes on elsewhere.
  char *p = one_in(2) ? me->arena + 5 * PAGE + 8 : one_in(2) ? me->arena + 2 * PAGE : me->arena + 8 * PAGE;
  int code = 0, writes = one_in(2);
  int n = faults(p, writes, &code);
  print("%u %s arena+%#lx: signal %d, code %d\n", me->step, writes ? "store" : "load", p - me->arena, n, code);
}

const struct action signal_actions[] = {
    {"sigaction", do_sigaction, 3, 0},
    {"odd sigaction", odd_sigaction, 1, 0},
    {"mask", do_mask, 4, 0},
    {"pending", do_pending, 2, 0},
    {"kill", do_kill, 5, 0},
    {"queue", do_queue, 4, 0},
    {"timedwait", do_timedwait, 3, 0},
    {"suspend", do_suspend, 2, 0},
    {"altstack", do_altstack, 2, 0},
    {"signalfd", do_signalfd, 1, 0},
    {"fault", do_fault, 2, 0},
    {0},
};
