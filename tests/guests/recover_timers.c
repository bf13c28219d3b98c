// build:
// args: 3
// deterministic
// loses
// Proves: a one-shot timer (alarm, setitimer, timer_create) rings once, whoever leads by then: also when the
// leader is lost after it rang (it rang twice) or after its signal was taken by sigwait; long ones keep
// their remaining time and interval, their ids and values; limits and affinity stay as set; an
// interval timer goes on. Tests of recovery kill the leader meanwhile. A sleep whose rest is told where its time
// stood goes on when its thread has been copied and a signal comes then (it was issued again, with the rest for
// its time, and the copy was stopped for that).
#include "guest.h"
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t alarms, ticks, posix[4], late;

static void on_alarm(int s) {
  (void)s;
  alarms++;
}
static void on_tick(int s) {
  (void)s;
  ticks++;
}
static void on_posix(int s, siginfo_t *info, void *context) {
  (void)context;
  CHECK(s == SIGRTMIN + 2 && info->si_code == SI_TIMER);
  CHECK(info->si_value.sival_int >= 0 && info->si_value.sival_int < 4);
  posix[info->si_value.sival_int]++;
}

static void nap(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
    ;
}

static timer_t make(int clock, int value) {
  timer_t t;
  struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2};
  e.sigev_value.sival_int = value;
  CHECK(timer_create(clock, &e, &t) == 0);
  return t;
}

static void arm(timer_t t, int flags, long s, long ms, long interval_ms) {
  struct itimerspec v = {{interval_ms / 1000, interval_ms % 1000 * 1000000}, {s, ms * 1000000}};
  if (flags) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    v.it_value.tv_sec += now.tv_sec;
    v.it_value.tv_nsec += now.tv_nsec;
    if (v.it_value.tv_nsec >= 1000000000) {
      v.it_value.tv_nsec -= 1000000000;
      v.it_value.tv_sec++;
    }
  }
  CHECK(timer_settime(t, flags, &v, NULL) == 0);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  int rounds = atoi(argv[1]);
  struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  sa.sa_handler = on_tick;
  CHECK(sigaction(SIGRTMIN + 1, &sa, NULL) == 0);
  struct sigaction info = {.sa_sigaction = on_posix, .sa_flags = SA_SIGINFO | SA_RESTART};
  CHECK(sigaction(SIGRTMIN + 2, &info, NULL) == 0);
  struct rlimit files = {77, 78}, got;
  CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
  cpu_set_t one, now;
  CPU_ZERO(&one);
  CHECK(sched_getaffinity(0, sizeof now, &now) == 0);
  for (int c = 0; c < CPU_SETSIZE; c++)
    if (CPU_ISSET(c, &now)) {
      CPU_SET(c, &one);
      break;
    }
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  // A hole in the ids.
  CHECK(timer_delete(make(CLOCK_MONOTONIC, 0)) == 0);
  timer_t t[4];
  for (int i = 0; i < 4; i++)
    t[i] = make(i % 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC, i);
  struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
  timer_t tick;
  CHECK(timer_create(CLOCK_MONOTONIC, &e, &tick) == 0);
  arm(tick, 0, 0, 20, 20);
  arm(t[3], 0, 5000, 0, 7000);
  struct itimerval prof = {{11, 0}, {500, 0}};
  CHECK(setitimer(ITIMER_PROF, &prof, NULL) == 0);
  prof.it_value.tv_sec = 400;
  CHECK(setitimer(ITIMER_VIRTUAL, &prof, NULL) == 0);
  sigset_t alrm, before;
  sigemptyset(&alrm);
  sigaddset(&alrm, SIGALRM);
  for (int i = 0; i < rounds; i++) {
    int ticked = ticks;
    // Rings, and its handler runs.
    struct itimerval v = {{0, 0}, {0, 30000}};
    CHECK(setitimer(ITIMER_REAL, &v, NULL) == 0);
    arm(t[0], 0, 0, 25, 0);
    arm(t[1], TIMER_ABSTIME, 0, 35, 0);
    nap(120);
    CHECK(alarms == 2 * i + 1 && posix[0] == i + 1 && posix[1] == i + 1);
    // Is taken by sigwait.
    CHECK(sigprocmask(SIG_BLOCK, &alrm, &before) == 0);
    CHECK(setitimer(ITIMER_REAL, &v, NULL) == 0);
    int s;
    CHECK(sigwait(&alrm, &s) == 0 && s == SIGALRM);
    nap(40);
    sigset_t pending;
    CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGALRM));
    // Rings while it is blocked.
    CHECK(setitimer(ITIMER_REAL, &v, NULL) == 0);
    nap(60);
    CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK(alarms == 2 * i + 2);
    struct itimerval left;
    CHECK(getitimer(ITIMER_REAL, &left) == 0);
    CHECK(left.it_value.tv_sec == 0 && left.it_value.tv_usec == 0);
    // Is stopped before it rings; a long one is left.
    v.it_value.tv_sec = 1000;
    CHECK(setitimer(ITIMER_REAL, &v, NULL) == 0);
    nap(60);
    CHECK(getitimer(ITIMER_REAL, &left) == 0);
    CHECK(left.it_value.tv_sec >= 990 && left.it_value.tv_sec <= 1000);
    CHECK(alarm(0) >= 990);
    CHECK(getitimer(ITIMER_PROF, &left) == 0);
    CHECK(left.it_value.tv_sec >= 490 && left.it_interval.tv_sec == 11);
    CHECK(getitimer(ITIMER_VIRTUAL, &left) == 0);
    CHECK(left.it_value.tv_sec >= 390 && left.it_value.tv_sec <= 400);
    struct itimerspec ls;
    CHECK(timer_gettime(t[3], &ls) == 0);
    CHECK(ls.it_value.tv_sec >= 4900 && ls.it_value.tv_sec <= 5000);
    CHECK(ls.it_interval.tv_sec == 7);
    CHECK(timer_gettime(t[0], &ls) == 0 && ls.it_value.tv_sec == 0 && ls.it_value.tv_nsec == 0);
    CHECK(ticks > ticked);
    CHECK(getrlimit(RLIMIT_NOFILE, &got) == 0 && got.rlim_cur == 77 && got.rlim_max == 78);
    CPU_ZERO(&now);
    CHECK(sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &one));
    printf("round %d\n", i);
    fflush(stdout);
  }
  CHECK(posix[3] == 0);
  // A new one has an id of its own.
  timer_t more = make(CLOCK_MONOTONIC, 2);
  for (int i = 0; i < 4; i++)
    CHECK(more != t[i]);
  CHECK(more != tick);
  arm(more, 0, 0, 10, 0);
  nap(40);
  CHECK(posix[2] == 1);
  guest_ok("recover_timers");
}
