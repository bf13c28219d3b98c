// build:
// deterministic
// loses
// Proves: a write of more than a pipe holds is whole, whoever reads it and when.
#include "guest.h"
#define BYTES (1 << 20)

static unsigned char piece[BYTES];

int main(void) {
  uint64_t seed = 3;
  for (size_t i = 0; i < BYTES; i++)
    piece[i] = guest_rand(&seed);
  piece[BYTES - 1] = '\n';
  CHECK(write(STDOUT_FILENO, piece, BYTES) == BYTES);
  guest_ok("full_pipe");
}
