// build:
// deterministic
// loses
// Proves: a dynamic PIE starts, prints through stdio and ends with 0.
#include "guest.h"
int main(void) {
  puts("hello");
  guest_ok("hello");
}
