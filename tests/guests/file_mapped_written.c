// build:
// loses
// not in data: mkstemp makes names from the address of a variable on the stack
// delayed
// Proves: what a file holds that is mapped to be read is the same for all replicas, although the one that leads writes
// to it for all: nobody writes there before each has come to the write, and so has looked (once a majority was
// enough: the third replica found what was written later).
#define _GNU_SOURCE
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum { ROUNDS = 200 };

int main(void) {
  char path[] = "/tmp/file_mapped_written.XXXXXX";
  int fd = mkstemp(path);
  CHECK(fd >= 0 && unlink(path) == 0);
  unsigned word = 0, sum = 0;
  CHECK(write(fd, &word, sizeof word) == sizeof word);
  volatile unsigned *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
  CHECK(mapped != MAP_FAILED);
  for (unsigned i = 1; i <= ROUNDS; i++) {
    word = i * i;
    struct iovec piece = {&word, sizeof word};
    sum = sum * 31 + *mapped;
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK((i % 2 ? write(fd, &word, sizeof word) : writev(fd, &piece, 1)) == sizeof word);
  }
  printf("%u\n", sum);
  guest_ok("file_mapped_written");
}
