// build:
// args: 6
// deterministic
// loses
// Proves: a SIGCHLD that a program sends itself comes, also where it has children of its own and where another
// replica leads by now (which dropped it as one that its kernel sends for a child that the program does not know).
#define _GNU_SOURCE
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t ours, of_children, others;

static void handler(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  if (info->si_code == SI_USER || info->si_code == SI_TKILL)
    ours += info->si_pid == getpid();
  else if (info->si_code == CLD_EXITED)
    of_children++;
  else
    others++;
}

int main(int argc, char **argv) {
  CHECK(argc == 2);
  int rounds = atoi(argv[1]);
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
  CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
  for (int i = 0; i < rounds; i++) {
    CHECK(raise(SIGCHLD) == 0 && ours == 2 * i + 1);
    CHECK(kill(getpid(), SIGCHLD) == 0 && ours == 2 * i + 2);
    pid_t child = fork();
    if (child == 0)
      _exit(i);
    CHECK(child > 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == i);
    struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
    printf("round %d\n", i);
    fflush(stdout);
  }
  CHECK(ours == 2 * rounds && others == 0 && of_children > 0);
  guest_ok("recover_own_chld");
  return 0;
}
