// build:
// env: GERYON_SHARED_FILES=map
// refused: mmap
// deterministic
// Proves: a forked child that lets a call write into what its parent has mapped to be shared is refused by name.
// (The call failed with EFAULT, and nobody said why.)
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  const char *path = guest_tmp("shared-reads-in");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2], st;
  CHECK(fd >= 0 && !ftruncate(fd, 8192) && !pipe(ends));
  char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && write(ends[1], "abcd", 4) == 4);
  pid_t pid = fork();
  if (pid == 0)
    _exit(read(ends[0], p + 100, 4) == 4 ? 7 : 8);
  CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == 7);
  CHECK(!memcmp(p + 100, "abcd", 4) && !munmap(p, 8192));
  unlink(path);
  guest_ok("shared_child_reads_in");
}
