// build:
// deterministic
// loses
// Proves: /proc of oneself answers alike: status, maps, fd, cmdline, stat.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
int main(void) {
  char line[512];
  FILE *f = fopen("/proc/self/status", "r");
  CHECK(f);
  long pid = -1;
  while (fgets(line, sizeof line, f))
    sscanf(line, "Pid: %ld", &pid);
  fclose(f);
  CHECK(pid == getpid());
  f = fopen("/proc/self/maps", "r");
  CHECK(f);
  int mine = 0;
  while (fgets(line, sizeof line, f)) {
    unsigned long a, b;
    CHECK(sscanf(line, "%lx-%lx", &a, &b) == 2 && a < b);
    mine += (unsigned long)main >= a && (unsigned long)main < b;
  }
  fclose(f);
  CHECK(mine == 1);
  DIR *d = opendir("/proc/self/fd");
  CHECK(d);
  int own = 0;
  struct dirent *e;
  while ((e = readdir(d)))
    own += atoi(e->d_name) == dirfd(d) && e->d_name[0] != '.';
  closedir(d);
  CHECK(own == 1);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/cmdline", getpid());
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0 && read(fd, line, sizeof line) > 0 && strstr(line, "io_proc_self"));
  guest_ok("io_proc_self");
}
