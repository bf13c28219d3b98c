// build:
// deterministic
// Proves: segments of System V with keys and without, read-only and at a fixed address, inherited by a
// fork and attached by key in a program that is executed, detached, removed; semop hands them over.
// (shmget was refused with ENOSYS.)
#include "guest.h"
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
static int nattch(int id) {
  struct shmid_ds ds;
  CHECK(!shmctl(id, IPC_STAT, &ds));
  return ds.shm_nattch;
}
int main(int argc, char **argv) {
  if (argc == 3) {
    int id = shmget(atoi(argv[2]), 0, 0);
    CHECK(id >= 0);
    uint64_t *q = shmat(id, NULL, 0);
    CHECK(q != (void *)-1 && q[100] == 4242);
    q[101] = q[100] + 1;
    _exit(0);
  }
  // A key that nobody else has.
  key_t key = 0x47000000 + getpid();
  int id = shmget(key, 20000, IPC_CREAT | IPC_EXCL | 0600);
  CHECK(id >= 0);
  uint64_t *p = shmat(id, NULL, 0);
  CHECK(p != (void *)-1 && p[0] == 0 && nattch(id) == 1);
  const uint64_t *r = shmat(id, NULL, SHM_RDONLY);
  CHECK(r != (void *)-1 && r != p && nattch(id) == 2);
  p[100] = 4242;
  CHECK(r[100] == 4242);
  int sem = semget(IPC_PRIVATE, 2, IPC_CREAT | 0600);
  CHECK(sem >= 0);
  struct sembuf up = {0, 1, 0}, down = {1, -1, SEM_UNDO}, give = {1, 1, SEM_UNDO}, take = {0, -1, 0};
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (!pid) {
    CHECK(!shmdt(r));
    for (int i = 0; i < 50; i++) {
      CHECK(!semop(sem, &down, 1));
      p[1] = guest_mix(p[1], i);
      CHECK(!semop(sem, &up, 1));
    }
    _exit(0);
  }
  for (int i = 0; i < 50; i++) {
    p[1] = guest_mix(p[1], 1000 + i);
    CHECK(!semop(sem, &give, 1) && !semop(sem, &take, 1));
    CHECK(r[1] == p[1]);
  }
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0 && nattch(id) == 2);
  pid = fork();
  CHECK(pid >= 0);
  char text[20];
  snprintf(text, sizeof text, "%d", (int)key);
  if (!pid) {
    execl(argv[0], argv[0], "child", text, NULL);
    _exit(1);
  }
  CHECK(waitpid(pid, &st, 0) == pid && st == 0 && r[101] == 4243);
  // Away, and again where it was.
  uint64_t was = p[1];
  CHECK(!shmdt(p) && nattch(id) == 1);
  CHECK(shmdt(p) < 0 && errno == EINVAL);
  CHECK(shmat(id, p, 0) == (void *)p && p[1] == was);
  CHECK(!shmctl(id, IPC_RMID, NULL) && p[100] == 4242);
  CHECK(!semctl(sem, 0, IPC_RMID) && !shmdt(p) && !shmdt(r));
  CHECK(shmget(key, 0, 0) < 0 && errno == ENOENT);
  printf("%llx\n", (unsigned long long)was);
  guest_ok("shm_sysv");
}
