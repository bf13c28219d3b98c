// build:
// deterministic
// loses
// Proves: file locks of both kinds inside one process tree.
#include "guest.h"
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
int main(void) {
  const char *path = guest_tmp("flock");
  int fd = open(path, O_CREAT | O_RDWR, 0600);
  int other = open(path, O_RDWR);
  CHECK(fd >= 0 && other >= 0);
  CHECK(flock(fd, LOCK_EX) == 0);
  CHECK(flock(other, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK);
  CHECK(flock(fd, LOCK_UN) == 0 && flock(other, LOCK_EX | LOCK_NB) == 0);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
  CHECK(fcntl(fd, F_SETLK, &l) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    struct flock q = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    CHECK(fcntl(fd, F_SETLK, &q) == -1 && (errno == EAGAIN || errno == EACCES));
    CHECK(fcntl(fd, F_GETLK, &q) == 0 && q.l_pid == getppid());
    _exit(0);
  }
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0 && unlink(path) == 0);
  guest_ok("io_flock_fcntl");
}
