// build: -pthread
// deterministic
// loses
// Proves: where a filter says KILL, the process or its thread ends by SIGSYS as natively, whatever its handler and its
// mask are; a killed thread leaves the others alone.
#include "guest.h"
#include "seccomp.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

static void handler(int signal) {
  (void)signal;
  static const char text[] = "the handler has run\n";
  write(1, text, sizeof text - 1);
}

static void install(unsigned action) {
  struct sock_filter code[] = {LOAD(nr), IF(__NR_sync, action), SAY(SECCOMP_RET_ALLOW)};
  INSTALL(code);
}

static void *killed(void *arg) {
  (void)arg;
  syscall(SYS_sync);
  printf("still there\n");
  _exit(2);
}

static void *waits(void *arg) {
  for (;;)
    pause();
  return arg;
}

static void child(const char *how) {
  pthread_t t;
  signal(SIGSYS, handler);
  sigset_t set;
  sigfillset(&set);
  if (strcmp(how, "process") == 0) {
    install(SECCOMP_RET_KILL_PROCESS);
    sigprocmask(SIG_BLOCK, &set, NULL);
    killed(NULL);
  } else if (strcmp(how, "thread alone") == 0) {
    install(SECCOMP_RET_KILL_THREAD);
    killed(NULL);
  } else if (strcmp(how, "unknown") == 0) {
    install(0x12340000);
    killed(NULL);
  } else if (strcmp(how, "main waits") == 0) {
    install(SECCOMP_RET_KILL_PROCESS);
    CHECK(pthread_create(&t, NULL, killed, NULL) == 0);
    waits(NULL);
  } else if (strcmp(how, "other waits") == 0) {
    install(SECCOMP_RET_KILL_PROCESS);
    CHECK(pthread_create(&t, NULL, waits, NULL) == 0);
    killed(NULL);
  } else if (strcmp(how, "main goes on") == 0) {
    install(SECCOMP_RET_KILL_THREAD);
    CHECK(pthread_create(&t, NULL, killed, NULL) == 0);
    CHECK(pthread_join(t, NULL) == 0);
    printf("joined\n");
    fflush(stdout);
    _exit(7);
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
  no_new_privs();
  run("process");
  run("thread alone");
  run("unknown");
  run("main waits");
  run("other waits");
  run("main goes on");
  // A vfork's child, in its parent's memory.
  pid_t pid = vfork();
  if (pid == 0) {
    struct sock_filter code[] = {LOAD(nr), IF(__NR_sync, SECCOMP_RET_KILL_PROCESS), SAY(SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {3 + 1, code};
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
    syscall(SYS_sync);
    _exit(3);
  }
  int st = 0;
  CHECK(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS);
  CHECK(prctl(PR_GET_SECCOMP) == 0);
  guest_ok("seccomp_kill");
}
