// build:
// deterministic
// loses
// Proves: epoll with pointer data, level and edge, eventfd and timerfd.
#include "guest.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
static int seen_event, seen_timer;
int main(void) {
  int ep = epoll_create1(EPOLL_CLOEXEC);
  int ev = eventfd(0, EFD_NONBLOCK);
  int tm = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  CHECK(ep >= 0 && ev >= 0 && tm >= 0);
  struct epoll_event e = {EPOLLIN, {.ptr = &seen_event}};
  CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, ev, &e) == 0);
  e.data.ptr = &seen_timer;
  CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, tm, &e) == 0);
  CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, tm, &e) == -1 && errno == EEXIST);
  struct epoll_event got[8];
  CHECK(epoll_wait(ep, got, 8, 0) == 0);
  uint64_t v = 5;
  CHECK(write(ev, &v, 8) == 8 && write(ev, &v, 8) == 8);
  CHECK(epoll_wait(ep, got, 8, -1) == 1 && got[0].data.ptr == &seen_event);
  CHECK(read(ev, &v, 8) == 8 && v == 10);
  CHECK(read(ev, &v, 8) == -1 && errno == EAGAIN);
  struct itimerspec its = {{0, 2000000}, {0, 2000000}};
  CHECK(timerfd_settime(tm, 0, &its, NULL) == 0);
  for (int i = 0; i < 10; i++) {
    CHECK(epoll_pwait(ep, got, 8, 2000, NULL) == 1);
    CHECK(got[0].data.ptr == &seen_timer && (got[0].events & EPOLLIN));
    CHECK(read(tm, &v, 8) == 8 && v >= 1);
  }
  CHECK(timerfd_gettime(tm, &its) == 0 && its.it_interval.tv_nsec == 2000000);
  CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, tm, NULL) == 0);
  CHECK(epoll_wait(ep, got, 8, 5) == 0);
  guest_ok("epoll_eventfd_timerfd");
}
