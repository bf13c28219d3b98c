// build:
// deterministic
// Proves: the process id that F_GETLK tells of a lock of another process. (A forked process's locks are lost with its
// leader: README.md, Limits.)
#include "guest.h"
#include <fcntl.h>
#include <sys/wait.h>
int main(void) {
  int go[2], done[2];
  CHECK(pipe(go) == 0 && pipe(done) == 0);
  const char *path = guest_tmp("lock");
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0);
  pid_t child = fork();
  CHECK(child >= 0);
  char byte;
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
  if (child == 0) {
    CHECK(fcntl(file, F_SETLK, &l) == 0);
    CHECK(write(done[1], "x", 1) == 1 && read(go[0], &byte, 1) == 1);
    _exit(0);
  }
  CHECK(read(done[0], &byte, 1) == 1);
  CHECK(fcntl(file, F_GETLK, &l) == 0 && l.l_type == F_WRLCK && l.l_pid == child);
  CHECK(write(go[1], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(unlink(path) == 0);
  guest_ok("ids_lock");
}
