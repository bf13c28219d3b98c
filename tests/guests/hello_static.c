// build: -static
// not in code: it is linked for a fixed address, which is said
// not in data: it is linked for a fixed address, which is said
// deterministic
// loses
// Proves: a static, position-dependent program starts, prints through stdio and ends with 0.
#include "guest.h"
int main(void) {
  puts("hello");
  guest_ok("hello_static");
}
