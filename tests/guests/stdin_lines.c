// build:
// stdin: first\nsecond line\n\nlast without newline
// deterministic
// loses
// Proves: stdin given through a pipe is read once and reaches every replica.
#include "guest.h"
int main(void) {
  char *line = NULL;
  size_t cap = 0;
  ssize_t n;
  int lines = 0;
  while ((n = getline(&line, &cap, stdin)) >= 0)
    printf("%d: %zd bytes\n", ++lines, n);
  free(line);
  CHECK(lines == 4 && feof(stdin));
  guest_ok("stdin_lines");
}
