// build:
// refused: int 0x80
// native: skip
// Proves: a call of 32-bit programs, by int 0x80, is not made, and it is said. (It got ENOSYS without a word.)
#include "guest.h"
#include <fcntl.h>
int main(void) {
  int before = open("/dev/null", O_WRONLY);
  for (int i = 0; i < 3; i++) {
    long result;
    // write, to a descriptor that is there.
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(4), "b"(before), "c"("x"), "d"(1)
                     : "memory", "r8", "r9", "r10", "r11");
    CHECK(result == -ENOSYS);
  }
  guest_ok("refused_int80");
}
