// Timers that ring, waits that their signals end, and faults that come to handlers.
#include "calls.h"
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t rings;
static void on_ring(int n) {
  (void)n;
  rings++;
}

// How a wait ends for which a timer rings.
static void a_wait_ends(void) {
  int restarts = one_in(3);
  struct sigaction before, a = {.sa_handler = on_ring, .sa_flags = restarts ? SA_RESTART : 0};
  CHECK(sigaction(SIGALRM, &a, &before) == 0);
  sigset_t alarm_only, mask;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  CHECK(sigprocmask(SIG_UNBLOCK, &alarm_only, &mask) == 0);
  int p[2];
  if (pipe(p) != 0)
    return;
  rings = 0;
  // (It rings again and again: one that comes before the wait does not end it.)
  struct itimerval soon = {{0, 4000}, {0, 1000 + (long)below(3000)}}, off = {{0, 0}, {0, 0}};
  char c;
  struct timespec long_time = {20, 0};
  struct pollfd one = {p[0], POLLIN, 0};
  int epoll = epoll_create1(0);
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  long r;
  int kind = below(restarts ? 5 : 8);
  switch (kind) {
  case 0:
    r = poll(&one, 1, 20000);
    break;
  case 1:
    r = nanosleep(&long_time, NULL);
    break;
  case 2:
    r = epoll_wait(epoll, &(struct epoll_event){0}, 1, 20000);
    break;
  case 3:
    r = pause();
    break;
  case 4:
    r = select(0, NULL, NULL, NULL, &(struct timeval){20, 0});
    break;
  case 5:
    r = read(p[0], &c, 1);
    break;
  case 6:
    r = clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, NULL) == EINTR ? -1 : 0, errno = EINTR;
    break;
  default:
    // (No other one may end it: it may be there before this one rings.)
    sigfillset(&alarm_only), sigdelset(&alarm_only, SIGALRM);
    r = sigsuspend(&alarm_only);
  }
  int error = errno;
  CHECK(setitimer(ITIMER_REAL, &off, NULL) == 0);
  print("%u wait %d ends: %ld %s, rang %d\n", me->step, kind, r, r == -1 ? strerrorname_np(error) : "", rings > 0);
  close(p[0]), close(p[1]), close(epoll);
  CHECK(sigaction(SIGALRM, &before, NULL) == 0 && sigprocmask(SIG_SETMASK, &mask, NULL) == 0);
}
static void do_itimer(void) {
  // (Far away.)
  long t[4] = {PICK(long, 0, 0, 100, -1), PICK(long, 0, 0, 1000000), PICK(long, 0, 1000000, -1), PICK(long, 0, 0, 5, 1000000)};
  if (t[2] == 0 && t[3] == 5)
    t[2] = 100;
  memcpy(me->scratch, t, sizeof t);
  if (one_in(2))
    CALL_HOW(VARIES, setitimer, PICK(int, 0, 1, 2, 3, -1), one_in(4) ? nowhere() : me->scratch, one_in(2) ? NULL : at());
  else
    CALL_HOW(VARIES, getitimer, PICK(int, 0, 1, 2, 3), at());
  t[0] = t[1] = t[2] = t[3] = 0;
  for (int i = 0; i < 3; i++)
    CHECK(syscall(SYS_setitimer, i, t, NULL) == 0);
  print("  alarm %u\n", alarm(0));
}
static void do_timer(void) {
  struct sigevent e = {.sigev_notify = PICK(int, SIGEV_SIGNAL, SIGEV_NONE, 77), .sigev_signo = PICK(int, SIGALRM, SIGALRM, 65, 0)};
  memcpy(me->loose, &e, sizeof e);
  int *id = (int *)(me->loose + 256);
  *id = -7;
  CALL(timer_create, PICK(int, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, 99, -1), one_in(6) ? nowhere() : me->loose, one_in(8) ? nowhere() : (void *)id);
  long t[4] = {0, 0, PICK(long, 100000, 0, -1), PICK(long, 0, 5, 1000000000)};
  if (t[2] == 0 && t[3] == 5)
    t[2] = 100;
  memcpy(me->scratch, t, sizeof t);
  CALL_HOW(VARIES | ARGUMENTS, timer_settime, *id, PICK(int, 0, 0, 2), one_in(6) ? nowhere() : me->scratch, one_in(2) ? at() : NULL);
  CALL_HOW(VARIES | ARGUMENTS, timer_gettime, *id, at());
  CALL_HOW(ARGUMENTS, timer_getoverrun, *id);
  CALL_HOW(ARGUMENTS, timer_delete, *id);
  CALL_HOW(ARGUMENTS, timer_delete, *id);
}
static void a_timer_signals(void) {
  uint64_t set = 1ul << (SIGALRM - 1), before;
  CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, &before, 8) == 0);
  struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM, .sigev_value.sival_int = 41 + (int)below(9)};
  timer_t t;
  CHECK(timer_create(CLOCK_MONOTONIC, &e, &t) == 0);
  struct itimerspec soon = {{0, 0}, {0, 1 + (long)below(500000)}};
  CHECK(timer_settime(t, 0, &soon, NULL) == 0);
  siginfo_t info;
  struct timespec limit = {10, 0};
  long r = syscall(SYS_rt_sigtimedwait, &set, &info, &limit, 8);
  print("%u timer's signal: %ld, code %d, value %d\n", me->step, r, info.si_code, info.si_value.sival_int);
  CHECK(timer_delete(t) == 0);
  CHECK(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, 8) == 0);
}

static sigjmp_buf way_back;
static volatile sig_atomic_t fault_code;
static void on_fault(int n, siginfo_t *info, void *context) {
  (void)context;
  fault_code = info->si_code;
  siglongjmp(way_back, n);
}

// Which signal an access to `p` gives.
int faults(char *p, int writes, int *code) {
  struct sigaction before[2], a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSEGV, &a, &before[0]) == 0 && sigaction(SIGBUS, &a, &before[1]) == 0);
  int n = sigsetjmp(way_back, 1);
  if (n == 0) {
    if (writes)
      *(volatile char *)p = 1;
    else
      (void)*(volatile char *)p;
  }
  *code = fault_code;
  CHECK(sigaction(SIGSEGV, &before[0], NULL) == 0 && sigaction(SIGBUS, &before[1], NULL) == 0);
  return n;
}

const struct action timer_actions[] = {
    {"a wait ends", a_wait_ends, 3, 0},
    {"itimer", do_itimer, 2, 0},
    {"timer", do_timer, 3, 0},
    {"a timer signals", a_timer_signals, 1, 0},
    {0},
};
