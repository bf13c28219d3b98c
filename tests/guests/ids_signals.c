// build:
// deterministic
// loses
// Proves: signals that are sent to a process, a thread, a child by id, by process descriptor, by a timer,
// and by whoever owns a descriptor; and whose id they show.
#include "guest.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
struct event {
  int signal, value;
  pid_t sender, at;
};
static int events[2];
static struct event seen;
static void handler(int s, siginfo_t *i, void *c) {
  (void)c;
  struct event e = {s, i->si_value.sival_int, i->si_pid, gettid()};
  CHECK(write(events[1], &e, sizeof e) == sizeof e);
}
static void await(int s) {
  CHECK(read(events[0], &seen, sizeof seen) == sizeof seen);
  CHECK(seen.signal == s);
}
static pthread_barrier_t there;
static pid_t other;
static int over[2];
static void *stand(void *arg) {
  (void)arg;
  other = gettid();
  pthread_barrier_wait(&there);
  char c;
  CHECK(read(over[0], &c, 1) == 1);
  return NULL;
}
int main(void) {
  struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
  int used[] = {SIGUSR1, SIGUSR2, SIGIO, SIGRTMIN, SIGRTMIN + 1};
  for (unsigned i = 0; i < sizeof used / sizeof *used; i++)
    CHECK(sigaction(used[i], &a, NULL) == 0);
  pthread_t t;
  CHECK(pipe(events) == 0 && pipe(over) == 0);
  CHECK(!pthread_barrier_init(&there, NULL, 2));
  CHECK(!pthread_create(&t, NULL, stand, NULL));
  pthread_barrier_wait(&there);
  CHECK(kill(getpid(), SIGUSR1) == 0);
  await(SIGUSR1);
  CHECK(seen.sender == getpid());
  CHECK(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 5}) == 0);
  await(SIGRTMIN);
  CHECK(seen.sender == getpid() && seen.value == 5);
  CHECK(syscall(SYS_tgkill, getpid(), other, SIGUSR2) == 0);
  await(SIGUSR2);
  CHECK(seen.at == other && seen.sender == getpid());
  CHECK(syscall(SYS_tkill, other, SIGUSR1) == 0);
  await(SIGUSR1);
  CHECK(seen.at == other);
  siginfo_t i = {.si_signo = SIGRTMIN, .si_code = SI_QUEUE};
  i.si_pid = getpid();
  i.si_value.sival_int = 6;
  CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), other, SIGRTMIN, &i) == 0);
  await(SIGRTMIN);
  CHECK(seen.at == other && seen.value == 6 && seen.sender == getpid());
  CHECK(!pthread_sigqueue(t, SIGRTMIN + 1, (union sigval){.sival_int = 7}));
  await(SIGRTMIN + 1);
  CHECK(seen.at == other && seen.value == 7);
  // A timer for one thread.
  timer_t timer;
  struct sigevent e = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
  e._sigev_un._tid = other;
  e.sigev_value.sival_int = 8;
  CHECK(timer_create(CLOCK_MONOTONIC, &e, &timer) == 0);
  struct itimerspec in = {.it_value = {.tv_nsec = 1000000}};
  CHECK(timer_settime(timer, 0, &in, NULL) == 0);
  await(SIGUSR2);
  CHECK(seen.at == other && seen.value == 8 && timer_delete(timer) == 0);
  // Process descriptors.
  int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
  CHECK(self >= 0);
  CHECK(syscall(SYS_pidfd_send_signal, self, SIGUSR1, NULL, 0) == 0);
  await(SIGUSR1);
  CHECK(seen.sender == getpid());
  // Who owns a descriptor gets its signals.
  int ends[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(fcntl(ends[0], F_SETOWN, getpid()) == 0 && fcntl(ends[0], F_GETOWN) == getpid());
  CHECK(fcntl(ends[0], F_SETFL, O_ASYNC) == 0);
  CHECK(write(ends[1], "x", 1) == 1);
  await(SIGIO);
  struct f_owner_ex own = {F_OWNER_TID, other}, got;
  CHECK(fcntl(ends[0], F_SETOWN_EX, &own) == 0 && fcntl(ends[0], F_GETOWN_EX, &got) == 0);
  CHECK(got.type == F_OWNER_TID && got.pid == other);
  CHECK(write(ends[1], "x", 1) == 1);
  await(SIGIO);
  CHECK(seen.at == other);
  // A child, which waits to be ended.
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0)
    for (;;)
      pause();
  int fd = (int)syscall(SYS_pidfd_open, child, 0);
  CHECK(fd >= 0);
  struct pollfd p = {.fd = fd, .events = POLLIN};
  CHECK(poll(&p, 1, 0) == 0);
  CHECK(syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) == 0);
  CHECK(poll(&p, 1, 20000) == 1);
  siginfo_t end = {0};
  CHECK(waitid(P_PIDFD, fd, &end, WEXITED) == 0);
  CHECK(end.si_pid == child && end.si_code == CLD_KILLED && end.si_status == SIGTERM);
  CHECK(waitpid(child, NULL, 0) == -1 && errno == ECHILD);
  CHECK(kill(child, 0) == -1 && errno == ESRCH);
  // One in a group of its own.
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(setpgid(0, 0) == 0 && getpgrp() == getpid());
    for (;;)
      pause();
  }
  CHECK(setpgid(child, child) == 0 && getpgid(child) == child);
  CHECK(kill(-child, SIGTERM) == 0);
  CHECK(waitid(P_PGID, child, &end, WEXITED) == 0 && end.si_pid == child);
  CHECK(write(over[1], "x", 1) == 1);
  CHECK(!pthread_join(t, NULL));
  guest_ok("ids_signals");
}
