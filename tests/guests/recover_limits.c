// build: -pthread
// args: 1
// deterministic
// Proves: a wait for a limited time ends in time (epoll_wait and others, which the kernel does not continue behind a stop of
// their thread), however often its thread is stopped meanwhile; and a wait on a condition that was begun in a follower goes
// on when that leads, also from the moment on at which threads run one at a time. Tests of recovery kill the leader of two
// meanwhile, which cannot be copied in parallel order as long as a thread waits on a condition: that is tried all the time.
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static int question, answer;
static atomic_int slept;

static void *answers(void *unused) {
  (void)unused;
  pthread_mutex_lock(&m);
  for (;;) {
    while (question == answer)
      pthread_cond_wait(&asked, &m);
    answer = question;
    pthread_cond_signal(&answered);
    if (answer < 0)
      break;
  }
  pthread_mutex_unlock(&m);
  return NULL;
}

static void *sleeps(void *unused) {
  (void)unused;
  struct timespec nap = {1, 500000000};
  CHECK(nanosleep(&nap, NULL) == 0);
  slept = 1;
  return NULL;
}

static void ask(int what) {
  pthread_mutex_lock(&m);
  question = what;
  pthread_cond_signal(&asked);
  while (answer != what)
    pthread_cond_wait(&answered, &m);
  pthread_mutex_unlock(&m);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  int rounds = atoi(argv[1]);
  pthread_t one, other;
  CHECK(pthread_create(&one, NULL, answers, NULL) == 0);
  int set = epoll_create1(0), semaphore = semget(IPC_PRIVATE, 1, 0600 | IPC_CREAT);
  CHECK(set >= 0 && semaphore >= 0);
  sigset_t none;
  sigemptyset(&none);
  sigaddset(&none, SIGUSR1);
  CHECK(pthread_sigmask(SIG_BLOCK, &none, NULL) == 0);
  struct timespec tenth = {0, 100000000};
  struct sembuf down = {0, -1, 0};
  for (int i = 1; i <= rounds; i++) {
    struct epoll_event event;
    slept = 0;
    CHECK(pthread_create(&other, NULL, sleeps, NULL) == 0);
    CHECK(epoll_wait(set, &event, 1, 100) == 0);
    CHECK(epoll_pwait(set, &event, 1, 100, &none) == 0);
    CHECK(sigtimedwait(&none, NULL, &tenth) == -1 && errno == EAGAIN);
    CHECK(semtimedop(semaphore, &down, 1, &tenth) == -1 && errno == EAGAIN);
    printf("round %d: %s\n", i, slept ? "late" : "in time");
    ask(i);
    CHECK(pthread_join(other, NULL) == 0);
  }
  ask(-1);
  CHECK(pthread_join(one, NULL) == 0 && semctl(semaphore, 0, IPC_RMID) == 0);
  guest_ok("recover_limits");
}
