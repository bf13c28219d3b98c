// build:
// not in clocks: segments are refused there
// not in code: segments are refused with variants
// not in data: segments are refused with variants
// deterministic
// loses
// Proves: processes that share memory come and go, and at times there are none: the next ones' turns go on from the last
// one's, also in replicas that were made anew meanwhile.
#include "guest.h"
#include <sys/shm.h>
#include <sys/wait.h>
#define ROUNDS 6
#define STEPS 10
static void step(int *cell, int rest) {
  for (int i = 0; i < STEPS; i++) {
    while (*(volatile int *)cell % 2 != rest)
      usleep(100);
    ++*cell;
  }
}
static void share(void) {
  int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  CHECK(id >= 0);
  int *cell = shmat(id, NULL, 0), status = -1;
  CHECK(cell != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
  pid_t other = fork();
  CHECK(other >= 0);
  step(cell, other == 0);
  if (other == 0)
    _exit(0);
  CHECK(waitpid(other, &status, 0) == other && status == 0 && *cell == 2 * STEPS);
}
int main(void) {
  for (int i = 0; i < ROUNDS; i++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      share();
      _exit(i);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == i);
    usleep(10000);
  }
  guest_ok("kin_again");
}
