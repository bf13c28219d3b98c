// build:
// deterministic
// Proves: a handler that interrupts a wait in sem_wait, sem_timedwait, a futex or pthread_cond_timedwait
// ends it as natively: EINTR without SA_RESTART for semaphores and for futexes; with it the wait goes on.
#include "guest.h"
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
static volatile sig_atomic_t hits;
static sem_t sem;
static sem_t *poster;
static void on(int s) {
  (void)s;
  hits++;
  if (poster)
    CHECK(sem_post(poster) == 0);
}
static void arm(int flags) {
  struct sigaction sa = {.sa_handler = on, .sa_flags = flags};
  CHECK(sigaction(SIGALRM, &sa, NULL) == 0);
  struct itimerval it = {{0, 0}, {0, 60000}}; // Later than the wait begins, on a loaded machine, too.
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
}
static void *other(void *arg) {
  (void)arg;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  struct timespec t = {0, 1000000};
  for (int i = 0; i < 200; i++)
    nanosleep(&t, NULL);
  return NULL;
}
int main(void) {
  CHECK(sem_init(&sem, 0, 0) == 0);
  for (int threads = 0; threads < 2; threads++) {
    pthread_t t;
    if (threads)
      CHECK(!pthread_create(&t, NULL, other, NULL));
    hits = 0;
    poster = NULL;
    arm(0);
    int r = sem_wait(&sem);
    printf("sem_wait %d %s hits %d\n", r, r ? strerror(errno) : "", hits);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    arm(0);
    r = sem_timedwait(&sem, &until);
    printf("sem_timedwait %d %s hits %d\n", r, r ? strerror(errno) : "", hits);
    arm(SA_RESTART);
    poster = &sem;
    r = sem_wait(&sem);
    printf("sem_wait restart %d %s hits %d\n", r, r ? strerror(errno) : "", hits);
    poster = NULL;
    arm(0);
    int word = 5;
    r = syscall(SYS_futex, &word, FUTEX_WAIT, 5, NULL, NULL, 0);
    printf("futex %d %s hits %d\n", r, r ? strerror(errno) : "", hits);
    arm(0);
    struct timespec rel = {20, 0};
    r = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 5, &rel, NULL, 0);
    printf("futex timed %d %s hits %d\n", r, r ? strerror(errno) : "", hits);
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&m);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 200000000; // The alarm comes within the wait, which goes on.
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      until.tv_sec++;
    }
    arm(0);
    while ((r = pthread_cond_timedwait(&c, &m, &until)) == 0)
      ;
    printf("cond %s hits %d\n", strerror(r), hits);
    pthread_mutex_unlock(&m);
    if (threads)
      CHECK(!pthread_join(t, NULL));
  }
  guest_ok("sig_eintr_sem");
}
