// build:
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: a forked child reads what its parent has mapped to be shared and writable; processes map such a
// file one after the other, executed ones too, and each finds what the one before has left there, and
// what was written to it meanwhile. (It was refused with ENODEV.)
#include "guest.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
extern char **environ;
static int *map(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 8192));
  int *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && !close(fd));
  return p;
}
static void join(pid_t pid) {
  int st;
  CHECK(pid >= 0 && waitpid(pid, &st, 0) == pid && st == 0);
}
int main(int argc, char **argv) {
  if (argc == 3) {
    int *p = map(argv[2]);
    CHECK(p[5] == 78);
    p[6]++;
    _exit(0);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s", guest_tmp("shared-then"));
  unlink(path);
  int *p = map(path);
  p[5] = 77;
  pid_t pid = fork();
  if (pid == 0) {
    CHECK(p[5] == 77 && p[6] == 0 && !munmap(p, 8192));
    _exit(0);
  }
  join(pid);
  p[5] = 78;
  char *child[] = {argv[0], "child", path, NULL};
  CHECK(!posix_spawn(&pid, "/bin/true", NULL, NULL, (char *[]){"true", NULL}, environ));
  join(pid);
  CHECK(!munmap(p, 8192));
  for (int i = 0; i < 3; i++) {
    pid = fork();
    if (pid == 0) {
      if (i == 1) {
        execv(argv[0], child);
        _exit(1);
      }
      int *q = map(path);
      CHECK(q[5] == 78 && q[6] == i);
      q[6]++;
      _exit(0);
    }
    join(pid);
  }
  int fd = open(path, O_RDWR), word = 0;
  CHECK(pread(fd, &word, 4, 24) == 4 && word == 3);
  word = 4;
  CHECK(pwrite(fd, &word, 4, 24) == 4 && !close(fd));
  p = map(path);
  CHECK(p[6] == 4 && p[5] == 78);
  unlink(path);
  guest_ok("shared_then_another");
}
