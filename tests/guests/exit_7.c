// build:
// exit: 7
// deterministic
// loses
// Proves: an exit status passes through.
#include "guest.h"
int main(void) {
  guest_ok("exit_7");
  return 7;
}
