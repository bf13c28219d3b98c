// build:
// deterministic
// loses
// Proves: buffers of any size reach every replica: a 3 MB file read with 4 KiB
// and 1 MB buffers, its first 256 KiB with 1-byte reads.
#include "guest.h"
#include <fcntl.h>
#define FILE_BYTES (3u << 20)
#define SINGLE_BYTES (256u << 10)
static uint64_t pass(const char *path, size_t chunk, size_t limit) {
  char *buf = malloc(chunk);
  int fd = open(path, O_RDONLY);
  CHECK(buf && fd >= 0);
  uint64_t h = 14695981039346656037ull;
  size_t total = 0;
  ssize_t n;
  while (total < limit && (n = read(fd, buf, chunk)) > 0) {
    h = guest_hash(h, buf, n);
    total += n;
  }
  CHECK(total == limit);
  close(fd);
  free(buf);
  return h;
}
int main(void) {
  const char *path = guest_tmp("big_read");
  uint64_t s = 42;
  char *data = malloc(FILE_BYTES);
  for (size_t i = 0; i < FILE_BYTES; i++)
    data[i] = guest_rand(&s);
  int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  CHECK(fd >= 0 && write(fd, data, FILE_BYTES) == FILE_BYTES && !close(fd));
  uint64_t whole = guest_hash(14695981039346656037ull, data, FILE_BYTES);
  uint64_t first = guest_hash(14695981039346656037ull, data, SINGLE_BYTES);
  CHECK(pass(path, 4096, FILE_BYTES) == whole);
  CHECK(pass(path, 1 << 20, FILE_BYTES) == whole);
  CHECK(pass(path, 1, SINGLE_BYTES) == first);
  CHECK(unlink(path) == 0);
  printf("hash %016llx\n", (unsigned long long)whole);
  guest_ok("big_read");
}
