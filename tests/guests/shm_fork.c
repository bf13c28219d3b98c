// build:
// deterministic
// Proves: a file that is mapped to be shared joins parent and child of one replica, mapped before the
// fork and behind it, and by a program that is executed; the file has what they have stored.
#include "guest.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
static int *map(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 8192));
  int *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && !close(fd));
  return p;
}
int main(int argc, char **argv) {
  if (argc == 3) {
    int *p = map(argv[2]);
    CHECK(p[5] == 77 && p[20] == 4);
    p[21] = 1234;
    _exit(0);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s", guest_tmp("shm-fork"));
  unlink(path);
  int *p = map(path), st;
  p[5] = 77;
  for (int i = 0; i < 5; i++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      int *q = map(path);
      CHECK(q != p && q[5] == 77 && p[20] == i);
      q[20] = i;
      p[i + 30] = 100 + q[20];
      q[20]++;
      if (i == 3)
        CHECK(!execl(argv[0], argv[0], "child", path, NULL));
      _exit(0);
    }
    CHECK(waitpid(pid, &st, 0) == pid && st == 0);
    CHECK(p[30 + i] == 100 + i && p[20] == i + 1);
  }
  CHECK(p[21] == 1234);
  FILE *f = fopen(path, "r");
  int all[100];
  CHECK(f && fread(all, 4, 100, f) == 100);
  CHECK(all[5] == 77 && all[34] == 104 && all[21] == 1234 && all[20] == 5);
  unlink(path);
  guest_ok("shm_fork");
}
