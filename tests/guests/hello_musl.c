// build: -static
// not in code: it is linked for a fixed address, which is said
// not in data: it is linked for a fixed address, which is said
// cc: musl-gcc
// deterministic
// loses
// Proves: a musl-linked static program (other start code, other malloc, other
// stdio) runs single-threaded.
#include "guest.h"
int main(void) {
  char *p = malloc(100000);
  CHECK(p);
  memset(p, 'x', 100000);
  free(p);
  for (int i = 0; i < 100; i++)
    printf("line %d\n", i);
  guest_ok("hello_musl");
}
