// build:
// args: 2 3
// deterministic
// loses
// Proves: children that begin in their parent's memory (posix_spawn, vfork),
// made by several threads at once, by a forked process, and by one
// whose parent has had several threads: each gets the
// descriptors that it was to have, an error of exec comes back, a child that
// writes for a while before it ends has written all, and each is waited for by
// the id that was shown. Tests of recovery kill replicas meanwhile.
#define _GNU_SOURCE
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#define MOST 8

extern char **environ;
static int rounds;
static uint64_t sums[MOST];

static void await(pid_t pid, int status) {
  int got;
  CHECK(waitpid(pid, &got, 0) == pid && WIFEXITED(got) && WEXITSTATUS(got) == status);
}

static size_t read_all(int from, char *to, size_t room) {
  size_t have = 0;
  for (ssize_t n; (n = read(from, to + have, room - have)) > 0; have += (size_t)n)
    ;
  CHECK(close(from) == 0);
  return have;
}

// A program whose output comes back.
static uint64_t spawns(char *text) {
  int p[2];
  char said[64];
  pid_t pid;
  posix_spawn_file_actions_t actions;
  char *args[] = {"echo", text, NULL};
  CHECK(pipe2(p, O_CLOEXEC) == 0);
  CHECK(posix_spawn_file_actions_init(&actions) == 0);
  CHECK(posix_spawn_file_actions_adddup2(&actions, p[1], 1) == 0);
  CHECK(posix_spawn(&pid, "/nonexistent", &actions, NULL, args, environ) == ENOENT);
  CHECK(posix_spawn(&pid, "/bin/echo", &actions, NULL, args, environ) == 0);
  CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
  CHECK(close(p[1]) == 0);
  size_t n = read_all(p[0], said, sizeof said);
  CHECK(n == strlen(text) + 1 && memcmp(said, text, n - 1) == 0);
  await(pid, 0);
  return guest_hash(0, said, n);
}

// A child that takes its time before it ends.
static void lingers(int round) {
  int p[2];
  char said[64];
  CHECK(pipe(p) == 0);
  pid_t pid = vfork();
  CHECK(pid >= 0);
  if (pid == 0) {
    close(p[0]);
    for (int i = 0; i < 10; i++) {
      struct timespec t = {0, 2000000};
      nanosleep(&t, NULL);
      if (write(p[1], "lingers", 1) != 1)
        _exit(99);
    }
    _exit(round % 50);
  }
  CHECK(close(p[1]) == 0);
  CHECK(read_all(p[0], said, sizeof said) == 10);
  await(pid, round % 50);
}

// The same, and a program, in a process that has its descriptors for itself.
static void forked(int round) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char text[32];
    snprintf(text, sizeof text, "child %d", round);
    lingers(round + 1);
    spawns(text);
    _exit(7);
  }
  await(child, 7);
}

static void *work(void *argument) {
  long me = (long)argument;
  for (int i = 0; i < rounds; i++) {
    char text[32];
    snprintf(text, sizeof text, "thread %ld round %d", me, i);
    sums[me] = guest_mix(sums[me], spawns(text));
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  rounds = atoi(argv[1]);
  long count = atol(argv[2]);
  CHECK(count >= 1 && count <= MOST);
  for (int i = 0; i < rounds; i++) {
    lingers(i);
    forked(i);
  }
  pthread_t threads[MOST];
  for (long i = 0; i < count; i++)
    CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
  uint64_t sum = 0;
  for (long i = 0; i < count; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    sum = guest_mix(sum, sums[i]);
  }
  // A process that has had several threads.
  for (int i = 0; i < rounds; i++)
    forked(i);
  printf("%016llx\n", (unsigned long long)sum);
  guest_ok("recover_spawn");
  return 0;
}
