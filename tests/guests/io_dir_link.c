// build:
// deterministic
// loses
// Proves: getcwd, readlink, symlink, mkdir, rename, getdents, stat, access.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}
int main(void) {
  const char *dir = guest_tmp("dir");
  char cwd[PATH_MAX], link[64];
  if (chdir(dir) == 0) {
    CHECK(system("rm -rf ./*") == 0);
  } else {
    CHECK(mkdir(dir, 0700) == 0 && chdir(dir) == 0);
  }
  CHECK(getcwd(cwd, sizeof cwd) && strstr(cwd, "guest-dir"));
  for (int i = 0; i < 300; i++) {
    char name[32];
    snprintf(name, sizeof name, "file-%03d", i);
    int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0640);
    CHECK(fd >= 0 && write(fd, name, i % 9) == i % 9 && close(fd) == 0);
  }
  CHECK(rename("file-007", "renamed") == 0 && unlink("file-008") == 0);
  CHECK(symlink("renamed", "sym") == 0);
  ssize_t n = readlink("sym", link, sizeof link);
  CHECK(n == 7 && !memcmp(link, "renamed", 7));
  struct stat st, lst;
  CHECK(stat("sym", &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 7);
  CHECK(lstat("sym", &lst) == 0 && S_ISLNK(lst.st_mode));
  CHECK(access("renamed", R_OK) == 0 && access("none", F_OK) == -1);
  CHECK(chmod("renamed", 0400) == 0 && truncate("file-001", 12345) == 0);
  struct dirent **list;
  int count = scandir(".", &list, NULL, by_name);
  CHECK(count == 302);
  for (int i = 0; i < count; i += 50)
    puts(list[i]->d_name);
  char exe[PATH_MAX];
  CHECK(readlink("/proc/self/exe", exe, sizeof exe) > 0);
  CHECK(strstr(exe, "io_dir_link"));
  CHECK(system("rm -rf ./*") == 0 && rmdir(cwd) == 0);
  guest_ok("io_dir_link");
}
