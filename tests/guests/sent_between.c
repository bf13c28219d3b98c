// build:
// deterministic
// loses
// Proves: each signal that one process of a program sends another one comes
// once: to one that has a handler, and to one that takes it by sigwait. Tests
// kill the leader when the kernel has given it to a process and nobody knows.
#define _GNU_SOURCE
#include "guest.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#define ROUNDS 6

static atomic_int ones, twos, hups;

static void handler(int signal) {
  ones += signal == SIGUSR1;
  twos += signal == SIGUSR2;
  hups += signal == SIGHUP;
}

// At most five seconds.
static void await(atomic_int *of, int count) {
  struct timespec t = {0, 1000000};
  for (int i = 0; i < 5000 && *of < count; i++)
    nanosleep(&t, NULL);
}

// Answers each signal of its parent's.
static int answers(pid_t parent) {
  for (int i = 1; i <= ROUNDS; i++) {
    await(&ones, i);
    CHECK(!kill(parent, SIGUSR2));
    await(&hups, i);
    CHECK(!kill(parent, SIGUSR2));
  }
  return ones * 16 + hups;
}

// Takes each as it waits for it.
static int waits(pid_t parent) {
  sigset_t set;
  struct timespec limit = {5, 0};
  int count = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  for (int i = 1; i <= ROUNDS; i++) {
    siginfo_t info = {0};
    int s = sigtimedwait(&set, &info, &limit);
    count += s == SIGTERM && info.si_pid == parent;
    CHECK(!kill(parent, SIGUSR1));
  }
  // No other one is to come.
  struct timespec soon = {0, 50000000};
  if (sigtimedwait(&set, NULL, &soon) == SIGTERM)
    count += 64;
  return count;
}

static int status_of(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

int main(void) {
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigset_t set;
  pid_t self = getpid(), child;
  CHECK(!sigaction(SIGUSR1, &a, NULL) && !sigaction(SIGUSR2, &a, NULL));
  CHECK(!sigaction(SIGHUP, &a, NULL));
  child = fork();
  CHECK(child >= 0);
  if (child == 0)
    _exit(answers(self));
  for (int i = 1; i <= ROUNDS; i++) {
    CHECK(!kill(child, SIGUSR1));
    await(&twos, 2 * i - 1);
    CHECK(!kill(child, SIGHUP));
    await(&twos, 2 * i);
    printf("round %d: %d answers\n", i, twos);
    fflush(stdout);
  }
  printf("the child was given %#x\n", status_of(child));
  fflush(stdout);
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
  child = fork();
  CHECK(child >= 0);
  if (child == 0)
    _exit(waits(self));
  for (int i = 1; i <= ROUNDS; i++) {
    CHECK(!kill(child, SIGTERM));
    await(&ones, i);
  }
  printf("it waited for %d, and %d answers came\n", status_of(child), ones);
  guest_ok("sent_between");
  return 0;
}
