// build:
// deterministic
// loses
// Proves: a program with much memory that it reads and does not write any more
// ends as natively; tests of recovery look at whose pages its copies have,
// until the file that is named exists.
#include "guest.h"
#define BYTES (48ul << 20)
#define STRIDE 64

int main(int argc, char **argv) {
  unsigned char *bytes = malloc(BYTES);
  CHECK(bytes != NULL);
  memset(bytes, 7, BYTES);
  puts("filled");
  fflush(stdout);
  // Where a fault is made, if one is: by now all replicas have filled it, for all have confirmed that.
  CHECK(write(1, "", 0) == 0);
  do {
    unsigned long sum = 0;
    for (size_t i = 0; i < BYTES; i += STRIDE)
      sum += bytes[i];
    CHECK(sum == BYTES / STRIDE * 7);
    usleep(10000);
  } while (argc > 1 && access(argv[1], F_OK) != 0);
  guest_ok("recover_big");
}
