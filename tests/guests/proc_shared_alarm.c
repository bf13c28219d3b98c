// build: -O1
// deterministic
// Proves: processes with one thread that share memory run a signal's handler while they spin without a call: on a load alone,
// with an atomic instruction in that memory, and computing. (With clocks they count no looks, so their replicas are brought
// to one state; and who spins on a load stands nearly always in the code that was written in that load's place.)
#include "guest.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t rang;
static int *shared;

static void on_alarm(int s) { rang += s == SIGALRM; }

static unsigned spin(int way) {
  struct itimerval once = {{0, 0}, {0, 60000}};
  unsigned x = 1, rounds = 1;
  rang = 0;
  CHECK(!setitimer(ITIMER_REAL, &once, NULL));
  if (way == 0)
    while (!rang)
      ;
  else if (way == 1)
    while (!rang)
      __atomic_fetch_add(shared, 1, __ATOMIC_SEQ_CST);
  else
    for (; !rang; rounds++)
      for (int i = 0; i < 1000; i++)
        x = x * 1664525u + 1013904223u;
  return x | rounds;
}

int main(void) {
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED && signal(SIGALRM, on_alarm) != SIG_ERR);
  for (int way = 0; way < 3; way++) {
    pid_t child = fork();
    CHECK(child >= 0);
    // (How far it has come by then is another number each time.)
    CHECK(spin(way) > 0);
    if (child == 0)
      _exit(10 + way);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    printf("the child of way %d ended with %d\n", way, WEXITSTATUS(status));
    fflush(stdout);
  }
  guest_ok("proc_shared_alarm");
}
