// build:
// args: 3
// deterministic
// loses
// Proves: who wants a signal at the end of its parent (PR_SET_PDEATHSIG) gets it then, and not when another replica ends
// that to the kernel is its parent: the signal that was asked for, from whom, and by force. What a thread has asked for
// it has in its next program, too, and nobody inherits it. Tests of recovery kill replicas meanwhile.
#include "guest.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t own, told, from_parent;
static pid_t parent;

static void on_own(int signal) { (void)signal, own++; }
static void on_end(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  from_parent = info->si_code == SI_USER && info->si_pid == parent;
  told++;
}

static int wanted(void) {
  int signal = -1;
  CHECK(prctl(PR_GET_PDEATHSIG, &signal) == 0);
  return signal;
}

static void *in_a_thread(void *result) {
  *(int *)result = wanted();
  return NULL;
}

static void nap(void) {
  struct timespec time = {0, 3000000};
  while (nanosleep(&time, &time) != 0)
    ;
}

static void asks(void) {
  int of_thread = -1;
  pthread_t thread;
  CHECK(prctl(PR_SET_PDEATHSIG, 65) == -1 && errno == EINVAL);
  CHECK(prctl(PR_GET_PDEATHSIG, 8) == -1 && errno == EFAULT);
  CHECK(pthread_create(&thread, NULL, in_a_thread, &of_thread) == 0 && pthread_join(thread, NULL) == 0);
  printf("wanted: %d, by a thread %d\n", wanted(), of_thread);
}

// A child of a process that ends; it says `name` when it is ready, and what became of it.
static void orphan(const char *name, int signal, const int *ready, const int *said, const char *program) {
  if (fork() != 0)
    return;
  struct sigaction act = {.sa_sigaction = on_end, .sa_flags = SA_SIGINFO};
  sigset_t blocked, before;
  parent = getppid();
  CHECK(wanted() == 0);
  CHECK(sigaction(SIGUSR2, &act, NULL) == 0 && prctl(PR_SET_PDEATHSIG, signal) == 0);
  close(ready[0]), close(said[0]);
  if (program != NULL) {
    char fds[2][16];
    snprintf(fds[0], sizeof fds[0], "%d", ready[1]), snprintf(fds[1], sizeof fds[1], "%d", said[1]);
    execl(program, program, "of", fds[0], fds[1], (char *)NULL);
    _exit(97);
  }
  CHECK(sigemptyset(&blocked) == 0 && sigaddset(&blocked, SIGUSR2) == 0 && sigprocmask(SIG_BLOCK, &blocked, &before) == 0);
  CHECK(write(ready[1], name, 1) == 1);
  while (!told)
    sigsuspend(&before);
  // (Who is killed says nothing.)
  CHECK(dprintf(said[1], "%s: %d, from its parent %d\n", name, told, from_parent) > 0);
  _exit(0);
}

// In the next program: the signal ends it, unless nobody sends it.
static int next_program(char **argv) {
  int ready = atoi(argv[2]), said = atoi(argv[3]);
  CHECK(dprintf(said, "in its next program: %d\n", wanted()) > 0 && write(ready, "n", 1) == 1);
  for (;;)
    pause();
}

static void round_of(const char *program) {
  int ready[2], said[2];
  char c, text[256];
  CHECK(pipe(ready) == 0 && pipe(said) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    orphan("asked", SIGUSR2, ready, said, NULL);
    orphan("killed", SIGKILL, ready, said, NULL);
    orphan("other", SIGUSR1, ready, said, program);
    for (int i = 0; i < 3; i++)
      CHECK(read(ready[0], &c, 1) == 1);
    nap();
    _exit(5);
  }
  close(ready[0]), close(ready[1]), close(said[1]);
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
  // All of them have ended, then.
  size_t all = 0;
  for (ssize_t n; (n = read(said[0], text + all, sizeof text - all)) > 0;)
    all += n;
  printf("%.*s", (int)all, text);
  close(said[0]);
}

int main(int argc, char **argv) {
  if (argc == 4)
    return next_program(argv);
  CHECK(argc == 2 && prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
  CHECK(signal(SIGUSR1, on_own) != SIG_ERR);
  asks();
  CHECK(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0);
  for (int i = 0; i < atoi(argv[1]); i++) {
    asks();
    nap();
    round_of("/proc/self/exe");
  }
  printf("its own: %d\n", (int)own);
  guest_ok("recover_orphans");
  return 0;
}
