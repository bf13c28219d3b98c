// build:
// deterministic
// descends
// Proves: threads that sleep for seconds, each in another call or lock, are not
// taken for hung ones; nor is a process that waits for its child.
#include "guest.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static int go, word, pipe_of[2], event, pair[2], of_child[2];

static void *in_mutex(void *x) {
  pthread_mutex_lock(&held);
  pthread_mutex_unlock(&held);
  return x;
}
static void *in_cond(void *x) {
  pthread_mutex_lock(&lock);
  while (!go)
    pthread_cond_wait(&cond, &lock);
  pthread_mutex_unlock(&lock);
  return x;
}
static void *in_rwlock(void *x) {
  pthread_rwlock_rdlock(&rw);
  pthread_rwlock_unlock(&rw);
  return x;
}
static void *in_barrier(void *x) {
  pthread_barrier_wait(&barrier);
  return x;
}
static void *in_sem(void *x) {
  sem_wait(&sem);
  return x;
}
static void *in_futex(void *x) {
  while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
  return x;
}
static void *in_read(void *x) {
  char c;
  CHECK(read(pipe_of[0], &c, 1) == 1);
  return x;
}
static void *in_poll(void *x) {
  struct pollfd p = {.fd = event, .events = POLLIN};
  CHECK(poll(&p, 1, -1) == 1);
  return x;
}
static void *in_epoll(void *x) {
  int e = epoll_create1(0);
  struct epoll_event v = {.events = EPOLLIN}, got;
  epoll_ctl(e, EPOLL_CTL_ADD, pair[0], &v);
  CHECK(epoll_wait(e, &got, 1, -1) == 1);
  return x;
}
static void *in_sigwait(void *x) {
  sigset_t s;
  int n = 0;
  sigemptyset(&s);
  sigaddset(&s, SIGUSR1);
  sigwait(&s, &n);
  CHECK(n == SIGUSR1);
  return x;
}
static void *in_sleep(void *x) {
  struct timespec t = {2, 0};
  nanosleep(&t, 0);
  return x;
}
static void *in_wait(void *x) {
  pid_t child = fork();
  if (child == 0) {
    char c;
    CHECK(read(of_child[0], &c, 1) == 1);
    _exit(3);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
  return x;
}
static void *in_join(void *other) {
  pthread_join(*(pthread_t *)other, 0);
  return 0;
}

int main(void) {
  void *(*waits[])(void *) = {in_mutex, in_cond, in_rwlock, in_barrier, in_sem,     in_futex,
                              in_read,  in_poll, in_epoll,  in_sleep,   in_sigwait, in_wait};
  enum { N = sizeof waits / sizeof *waits };
  pthread_t threads[N], joins;
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &s, 0);
  CHECK(pipe(of_child) == 0);
  CHECK(pipe(pipe_of) == 0 && (event = eventfd(0, 0)) >= 0);
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  pthread_barrier_init(&barrier, 0, 2);
  sem_init(&sem, 0, 0);
  pthread_mutex_lock(&held);
  pthread_rwlock_wrlock(&rw);
  for (int i = 0; i < N; i++)
    pthread_create(&threads[i], 0, waits[i], 0);
  pthread_t first = threads[0];
  pthread_create(&joins, 0, in_join, &first);
  struct timespec t = {3, 0};
  nanosleep(&t, 0);
  pthread_mutex_unlock(&held);
  pthread_mutex_lock(&lock);
  go = 1;
  pthread_cond_broadcast(&cond);
  pthread_mutex_unlock(&lock);
  pthread_rwlock_unlock(&rw);
  pthread_barrier_wait(&barrier);
  sem_post(&sem);
  __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
  CHECK(write(pipe_of[1], "x", 1) == 1);
  eventfd_write(event, 1);
  CHECK(write(pair[1], "y", 1) == 1);
  CHECK(write(of_child[1], "z", 1) == 1);
  kill(getpid(), SIGUSR1);
  for (int i = 1; i < N; i++)
    pthread_join(threads[i], 0);
  pthread_join(joins, 0);
  printf("%d waits ended\n", N);
  guest_ok("long_waits");
}
