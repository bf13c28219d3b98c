// build: -pthread
// deterministic
// loses
// Proves: filters pass to forked and vforked children, to threads, and through an exec, from whichever thread that is; what
// a thread or child adds is its own.
#include "guest.h"
#include "seccomp.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;

static void deny(int nr, int error) {
  struct sock_filter code[] = {LOAD(nr), IF(nr, SECCOMP_RET_ERRNO | error), SAY(SECCOMP_RET_ALLOW)};
  INSTALL(code);
}

static int errno_of(int nr) {
  errno = 0;
  return syscall(nr) == -1 ? errno : 0;
}

static void show(const char *who) {
  printf("%s: mode %d, %d %d %d\n", who, prctl(PR_GET_SECCOMP), errno_of(SYS_sync), errno_of(SYS_getpgrp), errno_of(SYS_getppid));
  fflush(stdout);
}

static void waits(pid_t pid) {
  int st = -1;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
}

static void *adds(void *arg) {
  show("thread");
  deny(SYS_getpgrp, 41);
  show("thread with its own");
  return arg;
}

static char *self;

static void *spawns(void *arg) {
  deny(SYS_getpgrp, 42);
  pid_t pid;
  char *args[] = {self, "spawned by the thread", NULL};
  CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ) == 0);
  waits(pid);
  return arg;
}

static void *executes(void *arg) {
  deny(SYS_getppid, 43);
  char *args[] = {self, "executed by the thread", NULL};
  execv("/nowhere", args);
  execv("/proc/self/exe", args);
  return arg;
}

static void *fails(void *arg) {
  deny(SYS_getppid, 44);
  execv("/nowhere", (char *[]){self, NULL});
  return arg;
}

int main(int argc, char **argv) {
  self = argv[0];
  if (argc > 1) {
    show(argv[1]);
    // And once more.
    deny(SYS_sync, 50 + strlen(argv[1]) % 10);
    show("added");
    if (strcmp(argv[1], "executed by the thread") == 0)
      guest_ok("seccomp_inherit");
    if (argc > 2 || strcmp(argv[1], "executed by the thread") == 0)
      return 0;
    execv("/proc/self/exe", (char *[]){argv[0], "again", "last", NULL});
    return 1;
  }
  no_new_privs();
  show("first");
  pthread_t t;
  deny(SYS_sync, 40);
  CHECK(pthread_create(&t, NULL, adds, NULL) == 0 && pthread_join(t, NULL) == 0);
  show("main behind the thread");
  CHECK(pthread_create(&t, NULL, spawns, NULL) == 0 && pthread_join(t, NULL) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    show("child");
    deny(SYS_getpgrp, 45);
    show("child with its own");
    CHECK(pthread_create(&t, NULL, fails, NULL) == 0 && pthread_join(t, NULL) == 0);
    // Not what the failed exec had.
    execv("/proc/self/exe", (char *[]){self, "executed by the child", NULL});
    _exit(1);
  }
  waits(pid);
  pid = vfork();
  if (pid == 0) {
    execv("/proc/self/exe", (char *[]){self, "vforked", NULL});
    _exit(1);
  }
  waits(pid);
  show("main");
  CHECK(pthread_create(&t, NULL, executes, NULL) == 0);
  for (;;)
    pause();
}
