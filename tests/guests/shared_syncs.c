// build:
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: fsync and fdatasync of a file that is mapped to be shared work, beside msync. (Given a word and two more
// files, it waits until the first one is there, and then synchronises as the word says, for tests that change the
// file meanwhile. What is wrong in it is to be found before that.)
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : guest_tmp("shared-syncs");
  const char *how = argc > 4 ? argv[4] : "all";
  int all = !strcmp(how, "all");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 8192));
  char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED);
  p[0] = 'm';
  while (argc > 2 && access(argv[2], F_OK))
    usleep(2000);
  if (all || !strcmp(how, "msync"))
    CHECK(!msync(p, 8192, MS_SYNC));
  if (all || !strcmp(how, "fsync"))
    CHECK(!fsync(fd));
  if (all || !strcmp(how, "fdatasync"))
    CHECK(!fdatasync(fd));
  printf("synchronised\n");
  fflush(stdout);
  CHECK(!munmap(p, 8192));
  guest_ok("shared_syncs");
}
