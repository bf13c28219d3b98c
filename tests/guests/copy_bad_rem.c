// build:
// deterministic
// Proves: a place that the kernel need not write to may be a bad one: the time left of a sleep that is not
// interrupted, entries of a poll that asks for too many, times in memory that is read-only. (All of them were
// read and written without a guard by the one who marshals, which crashed.)
#include "guest.h"
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

static void on_alarm(int s) { (void)s; }

static long report(const char *what, long r) {
  printf("%s: %ld, errno %d\n", what, r, r < 0 ? errno : 0);
  return r;
}

int main(void) {
  char *bad = (char *)8;
  struct timespec ts = {0, 1000};
  report("nanosleep", syscall(SYS_nanosleep, &ts, bad));
  report("clock_nanosleep", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, bad));
  struct timespec past = {0, 0};
  report("absolute", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &past, bad));
  struct timespec odd = {0, -1};
  report("odd", syscall(SYS_nanosleep, &odd, bad));

  struct sigaction sa = {.sa_handler = on_alarm};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  struct timespec ten = {10, 0};
  struct itimerval soon = {{0, 0}, {0, 20000}};
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  report("interrupted", syscall(SYS_nanosleep, &ten, bad));

  struct pollfd one = {.fd = -1};
  report("poll 2^31-1", syscall(SYS_poll, &one, 0x7fffffff, 0));
  report("poll 2^32-1", syscall(SYS_poll, &one, 0xffffffff, 0));
  report("poll bad", syscall(SYS_poll, bad, 0x7fffffff, 0));
  report("ppoll", syscall(SYS_ppoll, &one, 0x7fffffff, &ts, NULL, 8));
  report("upper half", syscall(SYS_poll, &one, 0x7700000001, 0));

  long *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  page[0] = 0, page[1] = 2000;
  page[4] = 0, page[5] = 10000000;
  CHECK(mprotect(page, 4096, PROT_READ) == 0);
  report("read-only nanosleep", syscall(SYS_nanosleep, page, page));
  report("read-only ppoll", syscall(SYS_ppoll, &one, 1, page, NULL, 8));
  report("read-only select", syscall(SYS_select, 0, NULL, NULL, NULL, page));
  report("read-only pselect", syscall(SYS_pselect6, 0, NULL, NULL, NULL, page, NULL));
  CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
  page += 4;
  report("read-only interrupted", syscall(SYS_pselect6, 0, NULL, NULL, NULL, page, NULL));
  int p[2];
  CHECK(pipe(p) == 0);
  struct pollfd *entry = (struct pollfd *)page;
  report("read-only entry", syscall(SYS_poll, entry, 1, 0));
  report("negative select", syscall(SYS_select, -1, bad, NULL, NULL, bad));
  guest_ok("copy_bad_rem");
}
