// build: -lm
// Proves: threads in all kinds of states at once (vector and floating-point
// registers live, a handler on an alternate stack, blocked in read, sleeping,
// in a condition wait, holding a robust mutex, coming and going) give one
// result in all replicas; tests of recovery kill replicas meanwhile.
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#define STEPS 400
#define CELLS 64

static uint64_t cells[CELLS];
static pthread_mutex_t robust, turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_cond = PTHREAD_COND_INITIALIZER;
static int turn, turns, alarms, pipes[2], born;
static __thread uint64_t own;
static __thread char alternate[65536];
static double floats;

static void nap(long us) {
  struct timespec t = {0, us * 1000};
  nanosleep(&t, NULL);
}

// Under the robust mutex: the order of the threads shows in the cells.
static void mix(int who) {
  int r = pthread_mutex_lock(&robust);
  CHECK(r == 0);
  own = guest_mix(own + 1, cells[(own + who) % CELLS]);
  cells[own % CELLS] ^= own;
  pthread_mutex_unlock(&robust);
}

static void *floating(void *arg) {
  double x[8];
  for (int i = 0; i < 8; i++)
    x[i] = 1.0 + i;
  for (int n = 0; n < STEPS; n++) {
    for (int k = 0; k < 20000; k++)
      for (int i = 0; i < 8; i++)
        x[i] = sqrt(x[i] * 1.0000001 + 0.5) + 0.25 * i;
    mix(1);
  }
  for (int i = 0; i < 8; i++)
    floats += x[i];
  return arg;
}

static void handler(int signal) {
  char here;
  if (signal == SIGALRM) {
    alarms++;
    return;
  }
  CHECK(&here > alternate && &here < alternate + sizeof alternate);
  for (int k = 0; k < 20; k++)
    mix(2);
}

static void *handled(void *arg) {
  stack_t s = {.ss_sp = alternate, .ss_size = sizeof alternate};
  CHECK(sigaltstack(&s, NULL) == 0);
  for (int n = 0; n < STEPS; n++) {
    CHECK(raise(SIGUSR1) == 0);
    nap(2000);
  }
  return arg;
}

static void *reader(void *arg) {
  uint64_t word, sum = 0;
  while (read(pipes[0], &word, sizeof word) == sizeof word)
    sum = guest_mix(sum, word), mix(3);
  own = sum;
  return arg;
}

static void *writer(void *arg) {
  for (uint64_t n = 0; n < STEPS; n++) {
    CHECK(write(pipes[1], &n, sizeof n) == sizeof n);
    nap(3000);
  }
  close(pipes[1]);
  return arg;
}

static void *player(void *arg) {
  int me = (int)(intptr_t)arg;
  for (int n = 0; n < STEPS; n++) {
    pthread_mutex_lock(&turn_lock);
    while (turn != me)
      pthread_cond_wait(&turn_cond, &turn_lock);
    turn = !me;
    turns++;
    pthread_cond_broadcast(&turn_cond);
    pthread_mutex_unlock(&turn_lock);
    mix(4 + me);
  }
  return arg;
}

static void *child(void *arg) {
  mix(8);
  return arg;
}

static void *parent(void *arg) {
  for (int n = 0; n < STEPS; n++) {
    pthread_t t;
    char *p = malloc(1000 + n * 37);
    memset(p, n, 1000);
    CHECK(pthread_create(&t, NULL, child, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
    born++;
    free(p);
    nap(1000);
  }
  return arg;
}

int main(void) {
  pthread_mutexattr_t a;
  pthread_mutexattr_init(&a);
  pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
  CHECK(pthread_mutex_init(&robust, &a) == 0 && pipe(pipes) == 0);
  struct sigaction s = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
  CHECK(sigaction(SIGUSR1, &s, NULL) == 0 && sigaction(SIGALRM, &s, NULL) == 0);
  struct itimerval i = {{0, 20000}, {0, 20000}};
  CHECK(setitimer(ITIMER_REAL, &i, NULL) == 0);
  void *(*bodies[])(void *) = {floating, handled, reader, writer, player, player, parent};
  enum { N = sizeof bodies / sizeof *bodies };
  pthread_t t[N];
  for (intptr_t k = 0; k < N; k++)
    CHECK(pthread_create(&t[k], NULL, bodies[k], (void *)(intptr_t)(k == 5)) == 0);
  for (int k = 0; k < N; k++)
    CHECK(pthread_join(t[k], NULL) == 0);
  i = (struct itimerval){{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &i, NULL) == 0);
  CHECK(turns == 2 * STEPS && born == STEPS);
  // The order and the number of alarms are left to chance, and must be the same in all replicas.
  printf("floats %.6f alarms %s order %016llx\n", floats, alarms > 0 ? "came" : "none",
         (unsigned long long)guest_hash(alarms, cells, sizeof cells));
  guest_ok("recover_patchwork");
}
