// build:
// Proves: a process that maps a file which others use already sees what the leader's saw there, from its
// first load on. (A follower went on behind its mmap before it was its turn; and an object was forgotten
// between two processes that were about to map it.)
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#define CHILDREN 6
int main(void) {
  const char *path = guest_tmp("join");
  unlink(path);
  pid_t pids[CHILDREN];
  for (int c = 0; c < CHILDREN; c++) {
    pids[c] = fork();
    CHECK(pids[c] >= 0);
    if (pids[c])
      continue;
    for (int i = 0; i < 4; i++) {
      int fd = open(path, O_RDWR | O_CREAT, 0600);
      CHECK(fd >= 0 && pwrite(fd, "", 1, 8191) == 1);
      volatile uint64_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      CHECK(p != MAP_FAILED);
      for (int k = 0; k < 300; k++)
        p[k % 3] = guest_mix(p[(k + 1) % 3], c * 1000 + k);
      char line[80];
      int n = snprintf(line, sizeof line, "%d %llx\n", c, (unsigned long long)p[0]);
      CHECK(write(1, line, n) == n && !close(fd));
      for (int k = 0; k < 3000; k++)
        p[k % 3] = guest_mix(p[(k + 1) % 3], c * 1000 + k);
      CHECK(!munmap((void *)p, 8192));
    }
    _exit(0);
  }
  for (int c = 0; c < CHILDREN; c++) {
    int st;
    CHECK(waitpid(pids[c], &st, 0) == pids[c] && st == 0);
  }
  unlink(path);
  guest_ok("shm_join");
}
