// build:
// deterministic
// loses
// Proves: one 5 MB write, larger than pipe and any log, leaves whole and once.
#include "guest.h"
#define BYTES (5u << 20)
int main(void) {
  char *b = malloc(BYTES);
  CHECK(b);
  for (size_t i = 0; i < BYTES; i++)
    b[i] = i % 64 == 63 ? '\n' : 'a' + (i / 64) % 26;
  size_t done = 0;
  while (done < BYTES) {
    ssize_t n = write(1, b + done, BYTES - done);
    CHECK(n > 0);
    done += n;
  }
  guest_ok("io_large_pipe");
}
