// Waiting for descriptors, and descriptors that are made to be waited for.
#include "calls.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>

static void do_poll(void) {
  struct pollfd *p = one_in(4) ? at() : (void *)me->scratch;
  memset(me->scratch, 0, 256);
  for (int i = 0; i < 8; i++)
    ((struct pollfd *)me->scratch)[i] = (struct pollfd){fd(), (short)next_random(), 0};
  uint64_t count = one_in(6) ? len() : below(8);
  if (one_in(2)) {
    CALL(poll, p, count, 0);
    return;
  }
  long t[2] = {0, PICK(long, 0, 1000, 999999999 + 1, -1)};
  memcpy(me->loose, t, sizeof t);
  CALL(ppoll, p, count, one_in(6) ? nowhere() : me->loose, one_in(4) ? at() : NULL, one_in(8) ? small() : 8);
}
static void do_select(void) {
  // (No set names a descriptor behind the program's own: what is open there is not the same in each run.)
  int n = PICK(int, 0, 3, 10, FIRST_FD + FDS, FIRST_FD + FDS, 64, -1, INT_MIN);
  for (int i = 0; i < 3; i++) {
    uint64_t word = next_random() & next_random() & ((1ul << (FIRST_FD + FDS)) - 1);
    memcpy(me->scratch + 64 * i, &word, 8);
  }
  long t[2] = {0, PICK(long, 0, 100, 5000)};
  memcpy(me->loose, t, sizeof t);
  void *sets[3];
  for (int i = 0; i < 3; i++)
    sets[i] = one_in(3) ? NULL : one_in(12) ? nowhere() : me->scratch + 64 * i;
  if (one_in(2)) {
    CALL(select, n, sets[0], sets[1], sets[2], one_in(8) ? nowhere() : me->loose);
    return;
  }
  uint64_t mask[2] = {one_in(8) ? 8 : (uintptr_t)me->scratch + 700, one_in(8) ? 4 : 8};
  memcpy(me->scratch + 600, mask, sizeof mask);
  CALL(pselect6, n, sets[0], sets[1], sets[2], one_in(8) ? nowhere() : me->loose,
       one_in(2) ? NULL : one_in(4) ? nowhere() : me->scratch + 600);
}
static void do_epoll_create(void) {
  if (one_in(3))
    CALL(epoll_create, PICK(int, 1, 0, -1));
  else
    CALL(epoll_create1, PICK(int, 0, 0, EPOLL_CLOEXEC, 1));
}
static void do_epoll_ctl(void) {
  struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | FLAGS(EPOLLET, EPOLLONESHOT, EPOLLRDHUP), .data.u64 = next_random()};
  if (one_in(12))
    e.events = (uint32_t)next_random() & ~EPOLLWAKEUP;
  memcpy(me->scratch, &e, sizeof e);
  CALL(epoll_ctl, fd(), one_in(2) ? 1 : below(5), fd(), one_in(6) ? at() : me->scratch);
}
static void do_epoll_wait(void) {
  long most = one_in(6) ? (long)len() : 1 + (long)below(8);
  switch (below(3)) {
  case 0:
    CALL(epoll_wait, fd(), at(), most, 0);
    break;
  case 1:
    CALL(epoll_pwait, fd(), at(), most, 0, one_in(2) ? NULL : at(), one_in(4) ? small() : 8);
    break;
  default:
    memset(me->scratch + 512, 0, 16);
    CALL(epoll_pwait2, fd(), at(), most, one_in(6) ? nowhere() : me->scratch + 512, NULL, 8);
  }
}
static void do_eventfd(void) {
  if (one_in(2))
    CALL(eventfd2, one_in(5) ? -1 : (long)below(10), EFD_NONBLOCK | FLAGS(EFD_CLOEXEC, EFD_SEMAPHORE));
  else
    CALL(eventfd2, 0, EFD_NONBLOCK | 0x10);
}
static void do_timerfd(void) {
  // (Far away: one that rings shows the time.)
  long t[4] = {PICK(long, 0, 0, 100, -1), PICK(long, 0, 5, 1000000000), PICK(long, 0, 1000000, 1000000, -1), PICK(long, 0, 1, 1000000000)};
  memcpy(me->scratch, t, sizeof t);
  switch (below(3)) {
  case 0:
    CALL(timerfd_create, PICK(int, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, 99, -1), TFD_NONBLOCK | FLAGS(TFD_CLOEXEC, 1));
    break;
  case 1:
    CALL_HOW(VARIES, timerfd_settime, fd(), PICK(int, 0, 0, 4, 0x10), one_in(5) ? at() : me->scratch, one_in(2) ? at() : NULL);
    break;
  default:
    CALL_HOW(VARIES, timerfd_gettime, fd(), at());
  }
}
static void a_timer_rings(void) {
  int t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  long soon[4] = {0, 0, 0, 1 + (long)below(300000)};
  memcpy(me->scratch, soon, sizeof soon);
  CALL_HOW(ARGUMENTS, timerfd_settime, t, 0, me->scratch, NULL);
  struct pollfd p = {t, POLLIN, 0};
  print("  poll %d, events %#x\n", poll(&p, 1, 10000), p.revents);
  CALL_HOW(ARGUMENTS, read, t, at(), PICK(long, 8, 7, 100, 8));
  close(t);
}
static void do_nap(void) {
  long t[2] = {PICK(long, 0, 0, 0, -1), PICK(long, 0, 1, 50000, 1000000000)};
  memcpy(me->scratch, t, sizeof t);
  if (one_in(2))
    CALL(nanosleep, one_in(5) ? nowhere() : me->scratch, one_in(2) ? at() : NULL);
  else
    CALL(clock_nanosleep, PICK(int, 0, 1, 99, -1, 3), PICK(int, 0, 0, 1), one_in(5) ? nowhere() : me->scratch, one_in(2) ? at() : NULL);
}
static void do_clock(void) {
  switch (below(4)) {
  case 0:
    CALL_HOW(VARIES, clock_gettime, PICK(int, 0, 1, 2, 4, 99, -1, 12), at());
    break;
  case 1:
    CALL(clock_getres, PICK(int, 0, 1, 7, 99), at());
    break;
  case 2:
    CALL_HOW(VARIES, gettimeofday, one_in(3) ? NULL : at(), one_in(3) ? at() : NULL);
    break;
  default:
    CALL_HOW(VARIES | NUMBER, time, one_in(2) ? NULL : at());
  }
}

const struct action wait_actions[] = {
    {"poll", do_poll, 4, 1},
    {"select", do_select, 3, 0},
    {"epoll_create", do_epoll_create, 1, 0},
    {"epoll_ctl", do_epoll_ctl, 4, 0},
    {"epoll_wait", do_epoll_wait, 3, 1},
    {"eventfd", do_eventfd, 1, 0},
    {"timerfd", do_timerfd, 2, 0},
    {"a timer rings", a_timer_rings, 1, 1},
    {"nap", do_nap, 2, 1},
    {"clock", do_clock, 2, 1},
    {0},
};
