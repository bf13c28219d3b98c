// build:
// args: 3
// deterministic
// loses
// Proves: who wants the children that its descendants leave (PR_SET_CHILD_SUBREAPER) has them, and no others: each is waited for
// once, by the id that it has, and its getppid() says so; also where the one that left it had another program, and what it had
// left had ended. A process in its next program has the children of the one before, and wants orphans as that did. Tests of
// recovery kill replicas meanwhile.
#include "guest.h"
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static int wants(void) {
  int value = -1;
  CHECK(prctl(PR_GET_CHILD_SUBREAPER, &value) == 0);
  return value;
}

static void nap(void) {
  struct timespec time = {0, 1000000};
  while (nanosleep(&time, &time) != 0)
    ;
}

// An orphan says who it is, and ends once it is told to, when it has another parent.
static void orphan(int said, int go, int code) {
  pid_t reaper = -1, own = getpid();
  char c;
  CHECK(wants() == 0 && write(said, &own, sizeof own) == sizeof own);
  if (code % 2 == 1) {
    CHECK(read(go, &c, 1) == 0);
    CHECK(read(go + 100, &reaper, sizeof reaper) == sizeof reaper);
    while (getppid() != reaper)
      nap();
  }
  _exit(code);
}

// One that leaves two: the second has ended by then.
static int leaves(int said, int go) {
  siginfo_t info;
  for (int code = 1; code <= 2; code++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
      orphan(said, go, code);
    if (code == 2)
      CHECK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0 && info.si_status == 2);
  }
  return 7;
}

static void round_of(const char *program) {
  int said[2], go[2], reaper[2];
  CHECK(pipe(said) == 0 && pipe(go) == 0 && pipe(reaper) == 0);
  CHECK(dup2(reaper[0], go[0] + 100) == go[0] + 100);
  pid_t own = getpid(), child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(go[1]);
    if (program != NULL) {
      char fds[2][16];
      snprintf(fds[0], sizeof fds[0], "%d", said[1]), snprintf(fds[1], sizeof fds[1], "%d", go[0]);
      execl(program, program, "leaves", fds[0], fds[1], (char *)NULL);
      _exit(97);
    }
    _exit(leaves(said[1], go[0]));
  }
  CHECK(close(said[1]) == 0 && write(reaper[1], &own, sizeof own) == sizeof own);
  pid_t orphans[2], pid;
  for (int i = 0; i < 2; i++)
    CHECK(read(said[0], &orphans[i], sizeof orphans[i]) == sizeof orphans[i]);
  int status, sum = 0, all = 0;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
  close(go[1]);
  while ((pid = wait(&status)) > 0) {
    CHECK((pid == orphans[0] || pid == orphans[1]) && WIFEXITED(status));
    sum += WEXITSTATUS(status), all++;
  }
  CHECK(errno == ECHILD);
  printf("%s: %d orphans, %d\n", program ? "in its next program" : "forked", all, sum);
  fflush(stdout);
  close(go[0] + 100), close(said[0]), close(go[0]), close(reaper[0]), close(reaper[1]);
}

// It makes a child, has another program, and finds that child there.
static int goes_on(int rounds, pid_t left, const char *program) {
  int status;
  CHECK(wants() == 1 && waitpid(left, &status, 0) == left && WEXITSTATUS(status) == 9);
  for (int i = 0; i < rounds; i++) {
    round_of(NULL);
    round_of(program);
  }
  CHECK(wait(NULL) == -1 && errno == ECHILD);
  CHECK(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0 && wants() == 0);
  guest_ok("recover_reaper");
  return 0;
}

int main(int argc, char **argv) {
  const char *program = "/proc/self/exe";
  if (argc == 4 && strcmp(argv[1], "leaves") == 0)
    return leaves(atoi(argv[2]), atoi(argv[3]));
  if (argc == 4)
    return goes_on(atoi(argv[2]), atoi(argv[3]), program);
  CHECK(argc == 2 && wants() == 0);
  CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && wants() == 1);
  round_of(NULL);
  char left[16];
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    nap();
    _exit(9);
  }
  snprintf(left, sizeof left, "%d", pid);
  execl(program, program, "on", argv[1], left, (char *)NULL);
  return 1;
}
