// build: -static
// not in code: it is linked for a fixed address, which is said
// not in data: it is linked for a fixed address, which is said
// args: setresuid
// args: setuid
// args: capset
// args: undumpable
// args: chroot
// args: dropped-chroot
// deterministic
// Proves: a process that has given up its privileges or has another root executes programs, by
// itself and from forked and vforked children, which do so again. (The agent was mapped from a
// path in /proc that the program may not open: exec ended the run with 125.)
#include "guest.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define OTHER 65534
extern char **environ;

static void copy_self(const char *to) {
  char buffer[65536];
  int in = open("/proc/self/exe", O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
  CHECK(in >= 0 && out >= 0);
  for (ssize_t n; (n = read(in, buffer, sizeof buffer)) > 0;)
    CHECK(write(out, buffer, n) == n);
  close(in);
  close(out);
}

static void drop(const char *what) {
  // (Were the real id another one than the effective one, libc would not read its tunables.)
  if (strcmp(what, "setresuid") == 0)
    CHECK(setresuid(OTHER, OTHER, geteuid()) == 0);
  else if (strcmp(what, "setuid") == 0 || strcmp(what, "dropped-chroot") == 0)
    CHECK(setgid(OTHER) == 0 && setuid(OTHER) == 0);
  else if (strcmp(what, "undumpable") == 0)
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
  else if (strcmp(what, "capset") == 0) {
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2];
    memset(d, 0, sizeof d);
    CHECK(syscall(SYS_capset, &h, d) == 0);
  }
}

static void waits(pid_t pid) {
  int st = -1;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
}

// Executed again: by whom, and how deep.
static int again(char **argv, int depth) {
  printf("%s %d uid %d gid %d\n", argv[1], depth, geteuid(), getegid());
  fflush(stdout);
  if (depth == 0)
    return 0;
  char less[2] = {'0' + depth - 1, 0};
  char *child[] = {argv[0], argv[1], argv[2], less, NULL};
  drop(argv[1]);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    execv(argv[2], child);
    _exit(98);
  }
  waits(pid);
  CHECK(posix_spawn(&pid, argv[2], NULL, NULL, child, environ) == 0);
  waits(pid);
  execv(argv[2], child);
  _exit(97);
}

int main(int argc, char **argv) {
  char *what = argv[1];
  if (argc == 4) {
    return again(argv, atoi(argv[3]));
  }
  if (geteuid() != 0 && strcmp(what, "undumpable") != 0) {
    printf("SKIP: %s needs root\n", what);
    guest_ok("priv_exec");
    return 0;
  }
  // A folder that others may enter, with a static copy in it for another root.
  char *dir = strdup(guest_tmp("priv-exec"));
  mkdir(dir, 0755);
  chmod(dir, 0755);
  char path[4200];
  snprintf(path, sizeof path, "%s/self", dir);
  copy_self(path);
  int inside = strstr(what, "chroot") != NULL;
  char *self = path, *more[] = {path, what, path, "2", NULL};
  CHECK(chmod(path, 0755) == 0);
  if (geteuid() == 0)
    CHECK(chdir(dir) == 0);
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    if (inside) {
      CHECK(chroot(dir) == 0 && chdir("/") == 0);
      self = more[0] = more[2] = "/self";
    }
    drop(what);
    execv(self, more);
    _exit(96);
  }
  waits(pid);
  CHECK(unlink(path) == 0 && rmdir(dir) == 0);
  guest_ok("priv_exec");
}
