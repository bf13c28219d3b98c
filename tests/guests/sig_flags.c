// build:
// deterministic
// loses
// Proves: what sigaction's flags and sigaltstack's SS_AUTODISARM say holds: SA_RESETHAND, SA_NODEFER, SA_ONSTACK,
// SA_NOCLDWAIT, SA_NOCLDSTOP, SIGCHLD ignored; siglongjmp out of handlers that interrupt calls; pending
// signals end with fork and stay through exec; values of sigqueue.
#include "guest.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif
static volatile sig_atomic_t hits, depth, deepest;
static sigjmp_buf back;
static char stack[65536];
static void count(int s) { (void)s; hits++; }
static void deep(int s) {
  if (++depth > deepest)
    deepest = depth;
  if (deepest < 3)
    raise(s);
  depth--;
}
static void on_stack(int s) {
  (void)s;
  char here;
  hits = &here >= stack && &here < stack + sizeof stack ? 1 : 2;
  stack_t now;
  CHECK(sigaltstack(NULL, &now) == 0);
  depth = now.ss_flags;
}
static void jump(int s) { (void)s; siglongjmp(back, 1); }
static void arm(void) {
  struct itimerval it = {{0, 0}, {0, 15000}};
  CHECK(setitimer(ITIMER_REAL, &it, NULL) == 0);
}
static void set(int s, void (*f)(int), int flags) {
  struct sigaction sa = {.sa_handler = f, .sa_flags = flags};
  CHECK(sigaction(s, &sa, NULL) == 0);
}
int main(int argc, char **argv) {
  sigset_t usr, before, pending;
  sigemptyset(&usr);
  sigaddset(&usr, SIGUSR1);
  sigaddset(&usr, SIGRTMIN);
  if (argc > 1) {
    CHECK(sigpending(&pending) == 0);
    printf("after exec: usr1 %d rt %d\n", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGRTMIN));
    siginfo_t i;
    CHECK(sigwaitinfo(&usr, &i) == SIGUSR1);
    printf("code %d own %d\n", i.si_code, i.si_pid == getpid());
    CHECK(sigwaitinfo(&usr, &i) == SIGRTMIN);
    printf("code %d own %d value %d\n", i.si_code, i.si_pid == getpid(), i.si_value.sival_int);
    printf("alarm %d\n", alarm(0) > 50);
    guest_ok("sig_flags");
    return 0;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  set(SIGUSR1, count, SA_RESETHAND);
  raise(SIGUSR1);
  struct sigaction now;
  CHECK(sigaction(SIGUSR1, NULL, &now) == 0);
  printf("resethand %d %d\n", hits, now.sa_handler == SIG_DFL);
  set(SIGUSR1, deep, SA_NODEFER);
  raise(SIGUSR1);
  printf("nodefer %d\n", deepest);
  for (unsigned auto_off = 0; auto_off < 2; auto_off++) {
    stack_t st = {.ss_sp = stack, .ss_size = sizeof stack, .ss_flags = auto_off ? SS_AUTODISARM : 0};
    CHECK(sigaltstack(&st, NULL) == 0);
    set(SIGUSR1, on_stack, SA_ONSTACK);
    raise(SIGUSR1);
    stack_t later;
    CHECK(sigaltstack(NULL, &later) == 0);
    printf("onstack %d flags %x later %x\n", hits, (unsigned)depth, (unsigned)later.ss_flags);
  }
  for (int i = 0; i < 3; i++) {
    set(SIGALRM, jump, i == 1 ? SA_RESTART : 0);
    int p[2];
    char c;
    CHECK(pipe(p) == 0);
    volatile int jumped = 0;
    if (sigsetjmp(back, 1) == 0) {
      arm();
      if (i < 2)
        CHECK(read(p[0], &c, 1) == 1);
      else
        nanosleep(&(struct timespec){20, 0}, NULL);
    } else
      jumped = 1;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &before) == 0);
    printf("jump %d %d\n", jumped, sigismember(&before, SIGALRM));
    close(p[0]);
    close(p[1]);
  }
  hits = 0;
  set(SIGCHLD, count, SA_NOCLDWAIT);
  pid_t pid = fork();
  if (!pid)
    _exit(3);
  int st;
  int r;
  while ((r = waitpid(pid, &st, 0)) < 0 && errno == EINTR)
    ;
  printf("nocldwait %d %s\n", r, strerror(errno));
  set(SIGCHLD, SIG_IGN, 0);
  pid = fork();
  if (!pid)
    _exit(3);
  r = waitpid(pid, &st, 0);
  printf("ignored %d %s\n", r, strerror(errno));
  hits = 0;
  set(SIGCHLD, count, SA_NOCLDSTOP | SA_RESTART);
  pid = fork();
  if (!pid) {
    raise(SIGSTOP);
    _exit(4);
  }
  CHECK(waitpid(pid, &st, WUNTRACED) == pid && WIFSTOPPED(st));
  printf("stopped, hits %d\n", hits);
  CHECK(kill(pid, SIGCONT) == 0);
  CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 4);
  printf("ended, hits %d\n", hits);
  set(SIGCHLD, SIG_DFL, 0);
  CHECK(sigprocmask(SIG_BLOCK, &usr, &before) == 0);
  union sigval v = {.sival_int = 77};
  CHECK(kill(getpid(), SIGUSR1) == 0 && sigqueue(getpid(), SIGRTMIN, v) == 0);
  pid = fork();
  if (!pid) {
    CHECK(sigpending(&pending) == 0);
    _exit(sigismember(&pending, SIGUSR1) + 2 * sigismember(&pending, SIGRTMIN));
  }
  CHECK(waitpid(pid, &st, 0) == pid);
  printf("after fork: %d\n", WEXITSTATUS(st));
  alarm(100);
  execl("/proc/self/exe", argv[0], "x", NULL);
  CHECK(0);
}
