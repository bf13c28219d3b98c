// build:
// deterministic
// loses
// Proves: process groups and sessions that a program makes stay when another
// replica leads: signals to a group reach all that are in it and nobody else,
// and ids of groups and sessions name what they did.
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#define ROUNDS 4

static atomic_int came;
static int answers[2], over[2];

static void handler(int signal) { came += signal == SIGUSR1; }

// At most three seconds.
static void await(int count) {
  struct timespec t = {0, 1000000};
  for (int i = 0; i < 3000 && came < count; i++)
    nanosleep(&t, NULL);
}

// Answers each signal of its group's.
static int answer(void) {
  for (int i = 1; i <= ROUNDS; i++) {
    await(i);
    CHECK(write(answers[1], "a", 1) == 1);
  }
  // (It is to be there when it is asked for its group.)
  char byte;
  CHECK(read(over[0], &byte, 1) == 1);
  return came;
}

static void await_answers(int count) {
  char answer;
  for (int i = 0; i < count; i++)
    CHECK(read(answers[0], &answer, 1) == 1);
}

static int status_of(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status);
}

static const char *name(pid_t id, pid_t one, pid_t other) {
  return id == one ? "its first" : id == other ? "its own" : "another";
}

// Two children in a group of their own, as a shell makes them.
static void job(const char *what) {
  pid_t self = getpid(), child[2], group = 0;
  CHECK(!pipe(answers) && !pipe(over));
  for (int i = 0; i < 2; i++) {
    child[i] = fork();
    CHECK(child[i] >= 0);
    if (child[i] == 0) {
      setpgid(0, group);
      _exit(answer());
    }
    if (!group)
      group = child[i];
    CHECK(!setpgid(child[i], group) || errno == EACCES);
  }
  for (int i = 1; i <= ROUNDS; i++) {
    CHECK(!kill(-group, SIGUSR1));
    await_answers(2);
    printf("%s: round %d, groups are %s and %s\n", what, i,
           name(getpgid(child[0]), group, self),
           name(getpgid(child[1]), group, self));
    fflush(stdout);
  }
  CHECK(write(over[1], "oo", 2) == 2);
  for (int i = 0; i < 2; i++)
    printf("%s: a child was given %d\n", what, status_of(child[i]));
  CHECK(kill(-group, 0) == -1 && errno == ESRCH);
  fflush(stdout);
}

int main(void) {
  struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
  CHECK(!sigaction(SIGUSR1, &a, NULL));
  job("in its session");
  // A daemon.
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    pid_t self = getpid();
    CHECK(setsid() == self && getsid(0) == self && getpgrp() == self);
    job("in a new session");
    printf("the session is %s, the group %s\n", name(getsid(0), 0, self),
           name(getpgrp(), 0, self));
    fflush(stdout);
    came = 0;
    CHECK(!kill(0, SIGUSR1));
    await(1);
    _exit(came);
  }
  printf("a daemon sent itself %d, and %d came to others\n", status_of(child),
         came);
  guest_ok("groups_kept");
  return 0;
}
