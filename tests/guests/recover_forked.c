// build:
// args: 2
// deterministic
// loses
// Proves: a process with one thread, forked by a program that has had several,
// may have children in its memory (vfork). Tests of recovery kill the leader
// meanwhile: there is no other thread that could prepare such a process.
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static void *nothing(void *argument) { return argument; }

static void await(pid_t pid, int status) {
  int got;
  CHECK(waitpid(pid, &got, 0) == pid && WIFEXITED(got) && WEXITSTATUS(got) == status);
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    for (int i = 0; i < atoi(argv[1]); i++) {
      pid_t own = vfork();
      CHECK(own >= 0);
      if (own == 0) {
        struct timespec nap = {0, 30000000};
        nanosleep(&nap, NULL);
        _exit(i % 50);
      }
      await(own, i % 50);
    }
    _exit(7);
  }
  await(child, 7);
  guest_ok("recover_forked");
  return 0;
}
