// build:
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: a file that is mapped to be shared may be cut off and become longer; beyond its end a store raises
// SIGBUS in every replica; what is appended to it appears in the mapping. (It was refused with ENODEV.)
#include "guest.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
static sigjmp_buf back;
static volatile char *fault;
static void on_bus(int n, siginfo_t *info, void *c) {
  (void)n, (void)c;
  fault = info->si_addr;
  siglongjmp(back, 1);
}
static int stores(volatile char *at) {
  if (sigsetjmp(back, 1))
    return 0;
  *at = 'S';
  return 1;
}
int main(void) {
  struct sigaction sa = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
  CHECK(!sigaction(SIGBUS, &sa, NULL));
  const char *path = guest_tmp("shared-beyond");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0);
  char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && !stores(p) && fault == p);
  CHECK(!ftruncate(fd, 5000));
  CHECK(stores(p + 4999) && stores(p + 8191) && !stores(p + 8192) && fault == p + 8192);
  char all[9000];
  CHECK(pread(fd, all, sizeof all, 0) == 5000 && all[4999] == 'S');
  int more = open(path, O_WRONLY | O_APPEND);
  // (What was stored behind the end of the file, in its last page, is not in it.)
  CHECK(more >= 0 && write(more, "appended", 8) == 8 && pwrite(more, "here, too", 9, 0) == 9);
  CHECK(!memcmp(p + 5000, "appendedhere, too", 17));
  CHECK(!ftruncate(fd, 4096 * 3) && stores(p + 8192) && p[8193] == 0);
  CHECK(!ftruncate(fd, 100) && !stores(p + 4096));
  CHECK(!truncate(path, 3 * 4096) && p[4999] == 0 && p[5000] == 0 && stores(p + 3 * 4096 - 1));
  CHECK(!msync(p, 3 * 4096, MS_SYNC) && !munmap(p, 4 * 4096));
  CHECK(pread(fd, all, sizeof all, 3 * 4096 - 1) == 1 && all[0] == 'S');
  CHECK(!close(fd) && !close(more) && !unlink(path));
  guest_ok("shared_beyond_end");
}
