// build: -pthread
// deterministic
// loses
// Proves: who comes to lead in a confirmed call, and takes the turn there, waits for nobody's confirmation of that, and can be copied.
#include "guest.h"
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/sem.h>

static int sem;

static void *waits(void *p) {
  (void)p;
  struct sembuf down = {0, -1, 0};
  CHECK(semop(sem, &down, 1) == 0);
  return NULL;
}

int main(void) {
  sem = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  CHECK(sem >= 0);
  pthread_t t;
  CHECK(pthread_create(&t, NULL, waits, NULL) == 0);
  usleep(50000);
  CHECK(write(1, "x\n", 2) == 2);
  usleep(200000);
  CHECK(write(1, "y\n", 2) == 2);
  struct sembuf up = {0, 1, 0};
  CHECK(semop(sem, &up, 1) == 0);
  CHECK(pthread_join(t, NULL) == 0 && semctl(sem, 0, IPC_RMID) == 0);
  guest_ok("th_call_behind_turn");
}
