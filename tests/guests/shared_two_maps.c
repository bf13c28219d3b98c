// build:
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: two writable shared mappings of one file are one memory, also with what calls read and
// write, cut off and add; what was stored is in the file. (It was refused with ENODEV.)
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#define N (8 * 4096)
int main(void) {
  const char *path = guest_tmp("two-maps");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0);
  char start[5000];
  for (unsigned i = 0; i < sizeof start; i++)
    start[i] = 'a' + i % 26;
  CHECK(write(fd, start, sizeof start) == sizeof start);
  CHECK(!ftruncate(fd, N));
  char *a = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char *b = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096);
  CHECK(a != MAP_FAILED && b != MAP_FAILED);
  CHECK(a[30] == 'e' && b[3] == start[4099]);
  a[4096 + 7] = 'X';
  CHECK(b[7] == 'X');
  char c;
  CHECK(pread(fd, &c, 1, 4103) == 1 && c == 'X');
  // What a call writes is in both mappings.
  CHECK(pwrite(fd, "hello", 5, 4100) == 5 && !memcmp(b + 4, "hello", 5));
  CHECK(lseek(fd, 10, SEEK_SET) == 10 && write(fd, "seek", 4) == 4);
  CHECK(!memcmp(a + 10, "seek", 4));
  // A mapping that becomes writable.
  CHECK(!mprotect(b, 4096, PROT_READ | PROT_WRITE));
  b[100] = 'Y';
  CHECK(a[4196] == 'Y');
  // What is cut off and added again is zero.
  memset(a, 'Z', N);
  CHECK(!ftruncate(fd, 4096) && !ftruncate(fd, N));
  CHECK(a[4095] == 'Z' && a[4096] == 0 && b[0] == 0);
  // It grows, and so does its mapping.
  CHECK(!ftruncate(fd, 4 * N));
  char *d = mremap(a, N, 4 * N, MREMAP_MAYMOVE);
  CHECK(d != MAP_FAILED);
  d[3 * N] = 'G';
  b[1] = 'B';
  CHECK(d[4097] == 'B');
  CHECK(pread(fd, &c, 1, 3 * N) == 1 && c == 'G');
  CHECK(!msync(d, 4 * N, MS_SYNC));
  // Its name is gone, and it is still there; a private mapping sees what is there now.
  CHECK(!unlink(path));
  char *p = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  CHECK(p != MAP_FAILED && p[4097] == 'B' && p[0] == 'Z');
  p[0] = 'P';
  CHECK(d[0] == 'Z');
  struct stat st;
  CHECK(!fstat(fd, &st) && st.st_size == 4 * N);
  CHECK(!munmap(d, 4 * N) && !munmap(b, 4096) && !close(fd));
  uint64_t h = guest_hash(7, p, N);
  printf("%llx\n", (unsigned long long)h);
  guest_ok("shared_two_maps");
}
