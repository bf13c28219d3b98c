// build: -static-pie
// deterministic
// loses
// Proves: a static PIE (no interpreter, relocates itself) starts, prints through stdio and ends with 0.
#include "guest.h"
int main(void) {
  puts("hello");
  guest_ok("hello_static_pie");
}
