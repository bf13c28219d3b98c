// build:
// refused: mmap
// deterministic
// Proves: a writable shared file mapping reaches the file (once), and is seen
// by read and by a forked child.
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  const char *path = guest_tmp("mmap_shared");
  int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
  CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
  char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED);
  strcpy(p, "through the mapping");
  CHECK(msync(p, 8192, MS_SYNC) == 0);
  char buf[64];
  CHECK(pread(fd, buf, 64, 0) == 64 && !strcmp(buf, "through the mapping"));
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    strcpy(p + 4096, "by the child");
    _exit(0);
  }
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  CHECK(!strcmp(p + 4096, "by the child"));
  CHECK(munmap(p, 8192) == 0);
  CHECK(pread(fd, buf, 64, 4096) == 64 && !strcmp(buf, "by the child"));
  CHECK(unlink(path) == 0);
  guest_ok("mmap_shared_file");
}
