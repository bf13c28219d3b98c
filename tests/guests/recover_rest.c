// build:
// args: 3
// deterministic
// Proves: a sleep tells what is left of it when a signal has ended it, and only then: where that is to be told nothing
// is written else, be it where the sleep was asked for or a place where nothing can be written. Tests of recovery kill
// replicas meanwhile, for which the sleeper is stopped.
#include "guest.h"
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

static const struct timespec asked = {0, 20000000};

static void on_alarm(int signal) { (void)signal; }

static int is_untouched(const struct timespec *t) { return t->tv_sec == asked.tv_sec && t->tv_nsec == asked.tv_nsec; }

static void is_left_alone(void) {
  struct timespec same = asked, request = asked, rest = asked;
  CHECK(nanosleep(&same, &same) == 0 && is_untouched(&same));
  CHECK(nanosleep(&request, &rest) == 0 && is_untouched(&request) && is_untouched(&rest));
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &request, &rest) == 0 && is_untouched(&rest));
  CHECK(syscall(SYS_nanosleep, &request, (void *)8) == 0);
  CHECK(syscall(SYS_nanosleep, &request, on_alarm) == 0);
}

// What is left of a minute when an alarm rings. (It rings again, for it may have rung before the sleep has begun.)
static void is_told(void) {
  struct itimerval often = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
  struct timespec request = {60, 0}, rest = {0, 0};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  CHECK(nanosleep(&request, &rest) == -1 && errno == EINTR);
  CHECK(rest.tv_sec > 0 && rest.tv_sec < 60 && request.tv_sec == 60);
  CHECK(nanosleep(&request, &request) == -1 && errno == EINTR && request.tv_sec > 0 && request.tv_sec < 60);
  request = (struct timespec){60, 0};
  CHECK(clock_nanosleep(CLOCK_REALTIME, 0, &request, &rest) == EINTR && rest.tv_sec > 0 && rest.tv_sec < 60);
  CHECK(syscall(SYS_nanosleep, &request, (void *)8) == -1 && errno == EFAULT);
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

int main(int argc, char **argv) {
  struct sigaction act = {.sa_handler = on_alarm};
  CHECK(argc == 2 && sigaction(SIGALRM, &act, NULL) == 0);
  for (int i = 0; i < atoi(argv[1]); i++) {
    is_left_alone();
    is_told();
  }
  guest_ok("recover_rest");
  return 0;
}
