// build:
// exit: 255
// deterministic
// loses
// Proves: exit(-1) is 255, and stdio is flushed by exit.
#include "guest.h"
int main(void) {
  printf("GUEST-OK exit_255\n");
  exit(-1);
}
