// build:
// env: GERYON_SHARED_FILES=map
// refused: mmap
// deterministic
// Proves: two processes that map one file to be shared and writable at once are refused by name: in which
// order they come to it is not repeated.
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
static int *map(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 8192));
  int *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && !close(fd));
  return p;
}
int main(void) {
  const char *path = guest_tmp("shared-at-once");
  unlink(path);
  int *p = map(path), st;
  p[1] = 1;
  pid_t pid = fork();
  if (pid == 0) {
    map(path)[1]++;
    _exit(0);
  }
  CHECK(waitpid(pid, &st, 0) == pid && st == 0 && p[1] == 2);
  unlink(path);
  guest_ok("shared_at_once");
}
