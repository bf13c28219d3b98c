// build:
// args: main
// args: thread
// args: busy
// deterministic
// loses
// not in clocks: refused there, the run stops with a message (see tests/cli/bounds.rs)
// ascends
// Proves: glibc changes the ids of all threads at once, by a signal to each: from the main thread and from
// another one, while threads sleep in a call, wait for a lock, or make calls; threads and processes that are
// made behind that have the new ids.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define OTHER 65534
#define THREADS 6
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER, lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static int is_open, ready, over, pipes[2];
static long raw_euid(void) { return syscall(SYS_geteuid); }

static void change(void) {
  CHECK(setegid(OTHER) == 0 && seteuid(OTHER) == 0);
  CHECK(seteuid(0) == 0 && setegid(0) == 0);
  CHECK(setgid(OTHER) == 0 && setuid(OTHER) == 0);
}

static void *body(void *arg) {
  long kind = (long)arg;
  pthread_mutex_lock(&gate);
  ready++;
  pthread_cond_broadcast(&opened);
  if (kind % 3 == 0)
    while (!is_open)
      pthread_cond_wait(&opened, &gate);
  pthread_mutex_unlock(&gate);
  if (kind % 3 == 1) {
    char byte;
    CHECK(read(pipes[0], &byte, 1) == 1);
  }
  if (kind % 3 == 2)
    for (int done = 0; !done;) {
      CHECK(write(pipes[1], "", 0) == 0);
      pthread_mutex_lock(&lock);
      done = over;
      pthread_mutex_unlock(&lock);
    }
  CHECK(raw_euid() == OTHER && getgid() == OTHER);
  return NULL;
}

static void *changer(void *arg) {
  change();
  return arg;
}

static void *late(void *arg) {
  CHECK(raw_euid() == OTHER);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0)
    _exit(raw_euid() == OTHER && setuid(0) == -1 ? 3 : 4);
  int st = -1;
  CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 3);
  return arg;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "main";
  if (geteuid() != 0) {
    printf("SKIP: needs root\n");
    guest_ok("priv_threads");
    return 0;
  }
  int busy = strcmp(what, "busy") == 0;
  pthread_t t[THREADS], other;
  CHECK(pipe(pipes) == 0);
  for (long i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, body, (void *)(busy || i % 3 != 2 ? i : 0)) == 0);
  pthread_mutex_lock(&gate);
  while (ready < THREADS)
    pthread_cond_wait(&opened, &gate);
  pthread_mutex_unlock(&gate);
  if (strcmp(what, "thread") == 0)
    CHECK(pthread_create(&other, NULL, changer, NULL) == 0 && pthread_join(other, NULL) == 0);
  else
    change();
  CHECK(raw_euid() == OTHER);
  pthread_mutex_lock(&gate);
  is_open = 1;
  pthread_cond_broadcast(&opened);
  pthread_mutex_unlock(&gate);
  pthread_mutex_lock(&lock);
  over = 1;
  pthread_mutex_unlock(&lock);
  CHECK(write(pipes[1], "xx", 2) == 2);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  for (int i = 0; i < 3; i++)
    CHECK(pthread_create(&other, NULL, late, NULL) == 0 && pthread_join(other, NULL) == 0);
  guest_ok("priv_threads");
}
