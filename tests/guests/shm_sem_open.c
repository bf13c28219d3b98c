// build: -pthread -lrt
// deterministic
// Proves: named semaphores pass the ball between processes, and memory behind them goes with it; a
// memfd does the same. (sem_open was refused with ENODEV.)
#include "guest.h"
#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  char na[64], nb[64];
  snprintf(na, sizeof na, "/guest-a-%d", (int)getpid());
  snprintf(nb, sizeof nb, "/guest-b-%d", (int)getpid());
  sem_t *a = sem_open(na, O_CREAT | O_EXCL, 0600, 0);
  sem_t *b = sem_open(nb, O_CREAT | O_EXCL, 0600, 1);
  CHECK(a != SEM_FAILED && b != SEM_FAILED);
  int fd = memfd_create("ball", MFD_CLOEXEC);
  CHECK(fd >= 0 && !ftruncate(fd, 4096));
  uint64_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (!pid) {
    sem_t *again = sem_open(na, 0);
    CHECK(again != SEM_FAILED);
    for (int i = 0; i < 200; i++) {
      CHECK(!sem_wait(b));
      p[0] = guest_mix(p[0], 2 * i + 1);
      CHECK(!sem_post(again));
    }
    _exit(0);
  }
  for (int i = 0; i < 200; i++) {
    CHECK(!sem_wait(a));
    p[0] = guest_mix(p[0], i);
    if (i % 50 == 0) {
      uint64_t v;
      CHECK(pread(fd, &v, 8, 0) == 8 && v == p[0]);
      printf("%llx\n", (unsigned long long)v);
      fflush(stdout);
    }
    CHECK(!sem_post(b));
  }
  int st, left;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  CHECK(!sem_getvalue(b, &left) && left == 1 && sem_trywait(a) && errno == EAGAIN);
  CHECK(!sem_unlink(na) && !sem_unlink(nb));
  printf("%llx\n", (unsigned long long)p[0]);
  guest_ok("shm_sem_open");
}
