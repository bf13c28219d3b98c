// build:
// deterministic
// not in clocks: the order in which processes come to one memory is repeated in serial order only
// not in code: mapped files are refused with variants
// not in data: mapped files are refused with variants
// Proves: what a process writes by a call to a file that it and another one
// have mapped is in the mapping at once. Tests kill the leader when it has made
// the call and nobody knows.
#define _GNU_SOURCE
#include "guest.h"
#include <sys/mman.h>
#include <sys/wait.h>
#define ROUNDS 30

int main(void) {
  int fd = memfd_create("kin_writes", 0);
  CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
  volatile int *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(m != MAP_FAILED);
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    while (m[0] < ROUNDS && getppid() == parent)
      usleep(1000);
    _exit(m[1] == ROUNDS * 7 ? 0 : 1);
  }
  CHECK(child > 0 && lseek(fd, 4096, SEEK_SET) == 4096);
  for (int i = 1; i <= ROUNDS; i++) {
    int text = i * 7;
    CHECK(pwrite(fd, &text, sizeof text, 4) == sizeof text);
    CHECK(m[1] == text);
    CHECK(write(fd, &text, sizeof text) == sizeof text);
    CHECK(m[1024 + i - 1] == text);
    m[0] = i;
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  guest_ok("kin_writes");
}
