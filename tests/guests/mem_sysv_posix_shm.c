// build: -lrt
// not in clocks: segments of System V are refused there
// not in code: segments are refused with variants
// not in data: segments are refused with variants
// deterministic
// Proves: System V and POSIX shared memory, semaphores and queues of SysV.
#include "guest.h"
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
int main(void) {
  int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  CHECK(id >= 0);
  int *p = shmat(id, NULL, 0);
  CHECK(p != (void *)-1 && shmctl(id, IPC_RMID, NULL) == 0);
  char name[64];
  snprintf(name, sizeof name, "/geryon-guest-%d", getpid());
  int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
  CHECK(fd >= 0 && shm_unlink(name) == 0 && ftruncate(fd, 4096) == 0);
  int *q = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(q != MAP_FAILED);
  int sem = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  CHECK(sem >= 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    p[0] = 11;
    q[0] = 22;
    struct sembuf up = {0, 1, 0};
    CHECK(semop(sem, &up, 1) == 0);
    _exit(0);
  }
  struct sembuf down = {0, -1, 0};
  CHECK(semop(sem, &down, 1) == 0 && p[0] == 11 && q[0] == 22);
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  CHECK(semctl(sem, 0, IPC_RMID) == 0 && shmdt(p) == 0);
  guest_ok("mem_sysv_posix_shm");
}
