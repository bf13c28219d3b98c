// build:
// deterministic
// loses
// Proves: private file mappings: content, copy on write, offset; a shared
// read-only mapping sees a later write; SIGBUS is not met inside the file.
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#define PAGE 4096
int main(void) {
  const char *path = guest_tmp("mmap_file");
  int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
  char page[PAGE];
  CHECK(fd >= 0);
  for (int i = 0; i < 64; i++) {
    memset(page, 'A' + i % 26, PAGE);
    CHECK(write(fd, page, PAGE) == PAGE);
  }
  char *p = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  char *q = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 5 * PAGE);
  char *s = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && q != MAP_FAILED && s != MAP_FAILED);
  CHECK(q[0] == 'A' + 5 && p[63 * PAGE] == 'A' + 63 % 26);
  memset(p, 'z', 10 * PAGE);
  CHECK(q[0] == 'A' + 5);
  CHECK(pread(fd, page, 1, 0) == 1 && page[0] == 'A');
  CHECK(pwrite(fd, "!", 1, 0) == 1 && s[0] == '!');
  uint64_t h = guest_hash(1, p, 64 * PAGE);
  CHECK(munmap(p, 64 * PAGE) == 0 && unlink(path) == 0);
  printf("hash %016llx\n", (unsigned long long)h);
  guest_ok("mmap_file");
}
