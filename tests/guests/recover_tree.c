// build:
// args: 8
// deterministic
// loses
// Proves: a child that forks a writer and a reader, whose pipe breaks when the
// reader has enough, round after round: every process is waited for by the id
// that fork has shown and once, none has a descriptor too few or too many or another
// directory, and a handled SIGPIPE comes once. Tests of recovery kill replicas meanwhile.
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
#define ENOUGH 20000

static volatile sig_atomic_t broken;

static void on_pipe(int s) {
  (void)s;
  broken++;
}

static void await(pid_t pid, int status) {
  int got;
  CHECK(waitpid(pid, &got, 0) == pid && WIFEXITED(got) && WEXITSTATUS(got) == status);
}

// Each child is waited for once.
static void alone(void) {
  int got;
  CHECK(waitpid(-1, &got, 0) == -1 && errno == ECHILD);
}

// Writes until nobody reads.
static int writes(int to, uint64_t state) {
  char block[5000];
  CHECK(signal(SIGPIPE, on_pipe) != SIG_ERR);
  for (;;) {
    for (size_t i = 0; i < sizeof block; i++)
      block[i] = (char)guest_rand(&state);
    if (write(to, block, sizeof block) < 0) {
      CHECK(errno == EPIPE && broken == 1);
      return 4;
    }
    // What was out already when the pipe broke.
    if (broken)
      return 4;
  }
}

static int reads(int from, int to) {
  uint64_t sum = 0;
  for (int i = 0; i < ENOUGH; i += 100) {
    char some[100];
    for (size_t have = 0; have < sizeof some;) {
      ssize_t n = read(from, some + have, sizeof some - have);
      CHECK(n > 0);
      have += (size_t)n;
    }
    sum = guest_hash(sum, some, sizeof some);
  }
  char byte = (char)sum;
  CHECK(write(to, &byte, 1) == 1);
  return 5;
}

// In a process of its own: the descriptors that it opens its parent does not have.
static int leads_two(int to, int round) {
  int p[2];
  char where[100];
  CHECK(chdir("/proc") == 0 && pipe(p) == 0);
  pid_t writer = fork();
  CHECK(writer >= 0);
  if (writer == 0) {
    close(p[0]);
    _exit(writes(p[1], (uint64_t)round + 1));
  }
  CHECK(close(p[1]) == 0);
  pid_t reader = fork();
  CHECK(reader >= 0);
  if (reader == 0)
    _exit(reads(p[0], to));
  CHECK(close(p[0]) == 0);
  await(writer, 4);
  await(reader, 5);
  alone();
  CHECK(getcwd(where, sizeof where) && strcmp(where, "/proc") == 0);
  return 6;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  uint64_t sum = 0;
  for (int round = 0; round < atoi(argv[1]); round++) {
    int up[2];
    char byte;
    CHECK(pipe(up) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      close(up[0]);
      _exit(leads_two(up[1], round));
    }
    CHECK(close(up[1]) == 0);
    CHECK(read(up[0], &byte, 1) == 1);
    sum = guest_mix(sum, (unsigned char)byte);
    // Its end: all who had the other side are gone, or have closed it.
    CHECK(read(up[0], &byte, 1) == 0 && close(up[0]) == 0);
    await(child, 6);
    alone();
  }
  printf("%016llx\n", (unsigned long long)sum);
  guest_ok("recover_tree");
  return 0;
}
