// build: -pthread
// args: 3 20
// deterministic
// loses
// Proves: seccomp filters hold on in copies and in who takes over: each thread has its own, TRAP runs the handler, children
// inherit them and end by them. Tests of recovery kill replicas meanwhile.
#include "guest.h"
#include "seccomp.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#define THREADS 3
static pthread_barrier_t there;
static int rounds, nap_ms;
static char *self;

static void nap(void) {
  struct timespec t = {nap_ms / 1000, nap_ms % 1000 * 1000000};
  CHECK(nanosleep(&t, NULL) == 0);
}

static void handler(int signal, siginfo_t *info, void *context) {
  greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
  CHECK(signal == SIGSYS && info->si_syscall == SYS_rmdir);
  r[REG_RAX] = r[REG_RDI] + info->si_errno;
}

static void deny(int nr, unsigned what) {
  struct sock_filter code[] = {LOAD(nr), IF(nr, what), SAY(SECCOMP_RET_ALLOW)};
  INSTALL(code);
}

static int errno_of(int nr) {
  errno = 0;
  return syscall(nr) == -1 ? errno : 0;
}

static void child(int me, int round) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    CHECK(errno_of(SYS_getpgrp) == 100 + me && syscall(SYS_rmdir, round) == round + 7);
    nap();
    if (round % 2) {
      char number[16];
      snprintf(number, sizeof number, "%d", me);
      execl("/proc/self/exe", self, "1", "1", number, NULL);
    }
    syscall(SYS_chroot, "/");
    _exit(1);
  }
  int st = 0;
  CHECK(waitpid(pid, &st, 0) == pid);
  CHECK(round % 2 ? st == 0 : WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS);
}

static void *thread(void *arg) {
  int me = (int)(long)arg;
  deny(SYS_getpgrp, SECCOMP_RET_ERRNO | (100 + me));
  for (int round = 0; round < rounds; round++) {
    pthread_barrier_wait(&there);
    for (int i = 0; i < 20; i++) {
      CHECK(errno_of(SYS_getpgrp) == 100 + me);
      CHECK(syscall(SYS_rmdir, i) == i + 7);
    }
    nap();
    if (me == round % THREADS)
      child(me, round);
    // One more for each round.
    deny(SYS_getppid, SECCOMP_RET_ERRNO | (round + 1));
    CHECK(errno_of(SYS_getppid) == round + 1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  self = argv[0];
  if (argc == 4) {
    CHECK(errno_of(SYS_getpgrp) == 100 + atoi(argv[3]));
    return 0;
  }
  rounds = argc > 1 ? atoi(argv[1]) : 3;
  nap_ms = argc > 2 ? atoi(argv[2]) : 20;
  struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSYS, &a, NULL) == 0);
  no_new_privs();
  deny(SYS_rmdir, SECCOMP_RET_TRAP | 7);
  deny(SYS_chroot, SECCOMP_RET_KILL_PROCESS);
  CHECK(pthread_barrier_init(&there, NULL, THREADS + 1) == 0);
  pthread_t t[THREADS];
  for (long i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, thread, (void *)i) == 0);
  for (int round = 0; round < rounds; round++) {
    pthread_barrier_wait(&there);
    CHECK(errno_of(SYS_getpgrp) == 0 && syscall(SYS_rmdir, round) == round + 7);
    printf("round %d\n", round);
    fflush(stdout);
  }
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  guest_ok("recover_filters");
}
