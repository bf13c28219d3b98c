// build:
// deterministic
// loses
// Proves: a process group that its last process has left is gone, although copies that were lost were in it, and what is
// left of them waits for a parent that lives; and who was put into another group is found there behind each loss.
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#define ROUNDS 6
#define LINES 6

static int over[2];

// Is there until the parent has closed its end; in a group of its own.
static pid_t child(void) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char byte;
    close(over[1]);
    CHECK(read(over[0], &byte, 1) == 0);
    _exit(0);
  }
  CHECK(!setpgid(child, child));
  return child;
}

static void lines(const char *what, int round) {
  struct timespec t = {0, 2000000};
  for (int i = 0; i < LINES; i++) {
    printf("round %d, line %d: %s\n", round, i, what);
    fflush(stdout);
    nanosleep(&t, NULL);
  }
}

static void round_of(int round) {
  CHECK(!pipe(over));
  pid_t one = child(), other = child();
  lines("each in its group", round);
  CHECK(getpgid(one) == one && getpgid(other) == other);
  CHECK(!setpgid(one, other));
  CHECK(getpgid(one) == other);
  CHECK(kill(-one, 0) == -1 && errno == ESRCH);
  lines("both in one", round);
  CHECK(kill(-one, 0) == -1 && errno == ESRCH);
  CHECK(getpgid(one) == other && getpgid(other) == other);
  CHECK(!kill(-other, 0));
  close(over[1]);
  CHECK(waitpid(-other, NULL, 0) > 0 && waitpid(-other, NULL, 0) > 0);
  CHECK(kill(-other, 0) == -1 && errno == ESRCH);
  close(over[0]);
}

int main(void) {
  for (int i = 0; i < ROUNDS; i++)
    round_of(i);
  guest_ok("groups_left");
  return 0;
}
