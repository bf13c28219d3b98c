// build:
// exit: SIGABRT
// deterministic
// loses
// Proves: abort ends by SIGABRT.
#include "guest.h"
int main(void) {
  guest_ok("exit_abort");
  abort();
}
