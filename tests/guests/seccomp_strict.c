// build: -pthread
// deterministic
// loses
// Proves: strict mode lets a thread read, write, return from a handler and exit; any other call ends it by SIGKILL, and
// the process with it where it is alone.
#include "guest.h"
#include "seccomp.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void handler(int signal) {
  (void)signal;
  write(1, "handled\n", 8);
}

static void strict(int by_prctl) {
  if (by_prctl)
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  else
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == 0);
}

static void *thread(void *arg) {
  strict(1);
  write(1, "in a thread\n", 12);
  syscall(SYS_getpid);
  write(1, "still there\n", 12);
  return arg;
}

static void child(const char *how) {
  int ends[2];
  char c = 0;
  CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
  if (strcmp(how, "exits") == 0) {
    strict(0);
    if (read(ends[0], &c, 1) == 1 && c == 'x')
      write(1, "read\n", 5);
    syscall(SYS_exit, 4);
  } else if (strcmp(how, "exit_group") == 0) {
    strict(1);
    _exit(4);
  } else if (strcmp(how, "opens") == 0) {
    strict(1);
    write(1, "opening\n", 8);
    syscall(SYS_open, "/dev/null", 0);
    write(1, "opened\n", 7);
  } else if (strcmp(how, "traps") == 0) {
    struct sigaction a = {.sa_handler = handler};
    CHECK(sigaction(SIGTRAP, &a, NULL) == 0);
    strict(1);
    __asm__ volatile("int3");
    syscall(SYS_exit, 8);
  } else if (strcmp(how, "thread") == 0) {
    pthread_t t;
    CHECK(pthread_create(&t, NULL, thread, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
    CHECK(prctl(PR_GET_SECCOMP) == 0);
    _exit(9);
  }
}

static void run(const char *how) {
  fflush(stdout);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0)
    child(how);
  int st = 0;
  CHECK(waitpid(pid, &st, 0) == pid);
  if (WIFSIGNALED(st))
    printf("%s: signal %d\n", how, WTERMSIG(st));
  else
    printf("%s: status %d\n", how, WEXITSTATUS(st));
}

int main(void) {
  run("exits");
  run("exit_group");
  run("opens");
  run("traps");
  run("thread");
  guest_ok("seccomp_strict");
}
