// build:
// deterministic
// loses
// Proves: each signal that a program sends one of its threads, or itself while
// several threads could take it, comes once. Tests kill the leader when the
// kernel has given it to a thread and nobody knows.
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#define THREADS 3
#define ROUNDS 6

static atomic_int came[2];
static atomic_int end;

// (As plain loads they would not be ordered in clocks.)
static int value(atomic_int *of) { return atomic_fetch_add(of, 0); }

static void handler(int signal) { came[signal == SIGUSR2]++; }

static void nap(void) {
  struct timespec t = {0, 1000000};
  nanosleep(&t, NULL);
}

static void *thread(void *arg) {
  while (!value(&end))
    nap();
  return arg;
}

// At most five seconds.
static void await(int which, int count) {
  for (int i = 0; i < 5000 && value(&came[which]) < count; i++)
    nap();
}

static void *born(void *arg) {
  await(0, (int)(intptr_t)arg);
  return arg;
}

int main(void) {
  pthread_t t[THREADS];
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
  CHECK(!sigaction(SIGUSR1, &a, NULL) && !sigaction(SIGUSR2, &a, NULL));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, thread, NULL));
  for (int i = 1; i <= ROUNDS; i++) {
    CHECK(!pthread_kill(t[i % THREADS], SIGUSR1));
    await(0, i);
    CHECK(!kill(getpid(), SIGUSR2));
    await(1, i);
    printf("round %d: %d came to a thread, %d to the process\n", i,
           value(&came[0]), value(&came[1]));
    fflush(stdout);
  }
  end = 1;
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  // To one that has only just been made.
  for (int i = ROUNDS + 1; i <= 2 * ROUNDS; i++) {
    CHECK(!pthread_create(&t[0], NULL, born, (void *)(intptr_t)i));
    CHECK(!pthread_kill(t[0], SIGUSR1));
    CHECK(!pthread_join(t[0], NULL));
  }
  printf("%d and %d came\n", value(&came[0]), value(&came[1]));
  guest_ok("sent_to_threads");
  return 0;
}
