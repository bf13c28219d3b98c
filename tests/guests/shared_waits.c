// build:
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: a program that maps a file to be shared and writable has its bytes there at once, and goes on behind
// its end. (Given two more files, it waits before each step until they are there, for tests that do something
// to its replicas or to the file meanwhile.)
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
static void wait_for(const char *path) {
  while (path && access(path, F_OK))
    usleep(2000);
}
int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : guest_tmp("shared-waits");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 8192));
  char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED);
  p[0] = 'm';
  wait_for(argc > 2 ? argv[2] : NULL);
  p[1] = 'n';
  CHECK(!munmap(p, 8192) && pwrite(fd, "o", 1, 2) == 1);
  wait_for(argc > 3 ? argv[3] : NULL);
  char found[3];
  CHECK(pread(fd, found, 3, 0) == 3 && !memcmp(found, "mno", 3));
  guest_ok("shared_waits");
}
