// build:
// args: 3 20
// deterministic
// descends
// loses
// Proves: signals that are pending and blocked wait for who has blocked them,
// with all that they say: the process's, those of one thread, several with
// values; taken by sigwaitinfo, signalfd or a handler. Tests of recovery kill
// the leader meanwhile.
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <sys/wait.h>
#define VALUES 4

static volatile sig_atomic_t handled, codes, senders;
static long nap_ms;

static void handler(int signal, siginfo_t *info, void *context) {
  (void)context;
  handled += signal == SIGHUP;
  codes += info->si_code == SI_USER;
  senders += info->si_pid == getpid();
}

static void nap(void) {
  struct timespec t = {nap_ms / 1000, nap_ms % 1000 * 1000000};
  CHECK(nanosleep(&t, NULL) == 0);
}

static void take(int signal, int value) {
  sigset_t one;
  siginfo_t info;
  sigemptyset(&one);
  sigaddset(&one, signal);
  CHECK(sigwaitinfo(&one, &info) == signal);
  CHECK(info.si_signo == signal && info.si_uid == getuid());
  // (Of others, the kernel names the process that leads now.)
  CHECK(value < 0 || (info.si_code == SI_QUEUE && info.si_pid == getpid() &&
                      info.si_value.sival_int == value));
}

static void *thread(void *arg) {
  int rounds = (int)(intptr_t)arg;
  for (int i = 0; i < rounds; i++) {
    CHECK(raise(SIGUSR1) == 0);
    nap();
    take(SIGUSR1, -1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  int rounds = atoi(argv[1]);
  nap_ms = atol(argv[2]);
  sigset_t set, hup, usr2;
  sigfillset(&set);
  sigdelset(&set, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGHUP, &action, NULL) == 0);
  sigemptyset(&hup);
  sigaddset(&hup, SIGHUP);
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  int fd = signalfd(-1, &usr2, SFD_CLOEXEC);
  CHECK(fd >= 0);
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, thread, (void *)(intptr_t)rounds));
  for (int i = 0; i < rounds; i++) {
    union sigval v;
    for (v.sival_int = 0; v.sival_int < VALUES; v.sival_int++)
      CHECK(sigqueue(getpid(), SIGRTMIN + 1, v) == 0);
    CHECK(kill(getpid(), SIGTERM) == 0);
    CHECK(kill(getpid(), SIGUSR2) == 0);
    CHECK(raise(SIGHUP) == 0);
    CHECK(handled == i);
    nap();
    sigset_t pending;
    CHECK(sigpending(&pending) == 0);
    CHECK(sigismember(&pending, SIGTERM) && sigismember(&pending, SIGUSR2));
    CHECK(sigismember(&pending, SIGHUP) && sigismember(&pending, SIGRTMIN + 1));
    CHECK(!sigismember(&pending, SIGUSR1));
    nap();
    for (int k = 0; k < VALUES; k++)
      take(SIGRTMIN + 1, k);
    take(SIGTERM, -1);
    struct signalfd_siginfo got;
    CHECK(read(fd, &got, sizeof got) == sizeof got);
    CHECK(got.ssi_signo == SIGUSR2 && got.ssi_uid == getuid());
    CHECK(handled == i);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &hup, NULL) == 0);
    CHECK(handled == i + 1);
    CHECK(pthread_sigmask(SIG_BLOCK, &hup, NULL) == 0);
    // A child's end waits for a handler, too.
    pid_t child = fork();
    if (child == 0)
      _exit(3);
    CHECK(child > 0);
    nap();
    sigset_t chld;
    siginfo_t info;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    CHECK(sigwaitinfo(&chld, &info) == SIGCHLD);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    printf("round %d\n", i);
    fflush(stdout);
  }
  CHECK(!pthread_join(t, NULL));
  // raise is tgkill: SI_TKILL, not SI_USER.
  CHECK(codes == 0 && senders == rounds);
  guest_ok("recover_signals");
  return 0;
}
