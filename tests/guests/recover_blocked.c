// build: -lm
// args: 64 5
// descends
// loses
// Proves: 64 threads that are blocked each in its own way (read, poll, futex,
// mutex, condition, semaphore, sleep, read inside a handler on an alternate
// stack, holding a robust mutex, not at all) go on as if nothing had happened,
// in the order that all replicas share; tests of recovery kill replicas meanwhile.
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#define THREADS_MAX 256
#define STACK 65536

enum { READ, POLL, FUTEX, MUTEX, CONDITION, SEMAPHORE, SLEEP, HANDLER, ROBUST, COMPUTE, KINDS };

struct worker {
  pthread_t id;
  int number, pipes[2], word;
  pthread_mutex_t gate, robust;
  sem_t sem;
  double x[8];
};

static struct worker workers[THREADS_MAX];
static char stacks[THREADS_MAX][STACK];
static int count, rounds, generation;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begins = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t meeting;
static uint64_t order;
static __thread struct worker *self;

static void nap(long us) {
  struct timespec t = {0, us * 1000};
  CHECK(nanosleep(&t, NULL) == 0);
}

static void take_byte(struct worker *w) {
  char byte;
  CHECK(read(w->pipes[0], &byte, 1) == 1 && byte == 'x');
}

static void handler(int signal) {
  char here;
  CHECK(signal == SIGUSR1);
  CHECK(&here > stacks[self->number] && &here < stacks[self->number] + STACK);
  take_byte(self);
}

static void take_word(struct worker *w) {
  for (;;) {
    int one = 1;
    if (__atomic_compare_exchange_n(&w->word, &one, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return;
    syscall(SYS_futex, &w->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  }
}

static void compute(struct worker *w) {
  for (int k = 0; k < 20000; k++)
    for (int i = 0; i < 8; i++)
      w->x[i] = sqrt(w->x[i] * 1.0000001 + 0.5) + 0.25 * i;
}

// Blocked, from the beginning of a round until the first thread lets it go.
static void block(struct worker *w, int round) {
  switch (w->number % KINDS) {
  case READ:
    return take_byte(w);
  case POLL: {
    struct pollfd p = {w->pipes[0], POLLIN, 0};
    CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLIN);
    return take_byte(w);
  }
  case FUTEX:
    return take_word(w);
  case MUTEX:
    pthread_mutex_lock(&w->gate);
    pthread_mutex_unlock(&w->gate);
    return;
  case CONDITION:
    pthread_mutex_lock(&lock);
    while (generation < round)
      pthread_cond_wait(&begins, &lock);
    pthread_mutex_unlock(&lock);
    return;
  case SEMAPHORE:
    while (sem_wait(&w->sem) != 0)
      CHECK(errno == EINTR);
    return;
  case SLEEP:
    return nap(20000);
  case HANDLER:
    CHECK(raise(SIGUSR1) == 0);
    return;
  case ROBUST:
    CHECK(pthread_mutex_lock(&w->robust) == 0);
    while (sem_wait(&w->sem) != 0)
      CHECK(errno == EINTR);
    CHECK(pthread_mutex_unlock(&w->robust) == 0);
    return;
  case COMPUTE:
    return compute(w);
  }
}

static void let_go(struct worker *w) {
  switch (w->number % KINDS) {
  case READ:
  case POLL:
  case HANDLER:
    CHECK(write(w->pipes[1], "x", 1) == 1);
    break;
  case FUTEX:
    __atomic_exchange_n(&w->word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &w->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    break;
  case MUTEX:
    pthread_mutex_unlock(&w->gate);
    break;
  case SEMAPHORE:
  case ROBUST:
    CHECK(sem_post(&w->sem) == 0);
    break;
  }
}

static void *work(void *arg) {
  self = arg;
  stack_t s = {.ss_sp = stacks[self->number], .ss_size = STACK};
  CHECK(sigaltstack(&s, NULL) == 0);
  for (int round = 1; round <= rounds; round++) {
    block(self, round);
    // The order in which they come is left to chance, and the same in all replicas.
    pthread_mutex_lock(&lock);
    order = guest_mix(order, self->number);
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
  }
  return NULL;
}

static void set_up(struct worker *w, int number) {
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  w->number = number;
  CHECK(pipe(w->pipes) == 0 && sem_init(&w->sem, 0, 0) == 0);
  CHECK(pthread_mutex_init(&w->robust, &a) == 0 && pthread_mutex_init(&w->gate, NULL) == 0);
  for (int i = 0; i < 8; i++)
    w->x[i] = number + i;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  count = atoi(argv[1]);
  rounds = atoi(argv[2]);
  CHECK(count > 0 && count <= THREADS_MAX && rounds > 0);
  struct sigaction s = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
  CHECK(sigaction(SIGUSR1, &s, NULL) == 0);
  CHECK(pthread_barrier_init(&meeting, NULL, count + 1) == 0);
  for (int i = 0; i < count; i++) {
    set_up(&workers[i], i);
    if (i % KINDS == MUTEX)
      pthread_mutex_lock(&workers[i].gate);
  }
  for (int i = 0; i < count; i++)
    CHECK(pthread_create(&workers[i].id, NULL, work, &workers[i]) == 0);
  for (int round = 1; round <= rounds; round++) {
    nap(30000);
    for (int i = 0; i < count; i++)
      let_go(&workers[i]);
    pthread_mutex_lock(&lock);
    generation = round;
    pthread_cond_broadcast(&begins);
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < count; i++)
      if (i % KINDS == MUTEX)
        pthread_mutex_lock(&workers[i].gate);
    printf("round %d order %016llx\n", round, (unsigned long long)order);
    fflush(stdout);
    pthread_barrier_wait(&meeting);
  }
  double sum = 0;
  for (int i = 0; i < count; i++) {
    CHECK(pthread_join(workers[i].id, NULL) == 0);
    for (int k = 0; k < 8; k++)
      sum += workers[i].x[k];
  }
  printf("sum %.9f\n", sum);
  guest_ok("recover_blocked");
}
