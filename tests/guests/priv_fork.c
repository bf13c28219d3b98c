// build:
// args: seteuid
// args: setuid
// args: setresuid
// args: setgid
// args: capset
// args: undumpable
// args: no-new-privs
// args: chroot
// args: empty-root
// args: keepcaps
// deterministic
// loses
// Proves: a process that has given up its privileges forks, and its children
// fork, map files and make threads: what the agent needs from the monitor does
// not depend on what the program may do. (The child opened the monitor's memory
// by a path in /proc, with the program's credentials, and was killed unseen.)
#include "guest.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define OTHER 65534

static void *body(void *arg) {
  *(int *)arg += 1;
  return NULL;
}

static void thread(void) {
  pthread_t t;
  int n = 4;
  CHECK(pthread_create(&t, NULL, body, &n) == 0);
  CHECK(pthread_join(t, NULL) == 0 && n == 5);
}

// A file that was opened before, mapped now.
static void map(int file) {
  char *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  CHECK(at != MAP_FAILED && strcmp(at, "some bytes") == 0);
  CHECK(munmap(at, 4096) == 0);
}

static int tree(int depth, int file) {
  int sum = 1, pipes[2];
  map(file);
  thread();
  for (int i = 0; depth > 0 && i < 2; i++) {
    CHECK(pipe(pipes) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      close(pipes[0]);
      int own = tree(depth - 1, file);
      CHECK(write(pipes[1], &own, sizeof own) == sizeof own);
      _exit(0);
    }
    close(pipes[1]);
    int own = -1, st = -1;
    CHECK(read(pipes[0], &own, sizeof own) == sizeof own);
    CHECK(waitpid(pid, &st, 0) == pid && st == 0);
    close(pipes[0]);
    sum += own;
  }
  return sum;
}

static void drop_caps(void) {
  struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct d[2];
  memset(d, 0, sizeof d);
  CHECK(syscall(SYS_capset, &h, d) == 0);
}

static void give_up(const char *what) {
  if (strcmp(what, "seteuid") == 0)
    CHECK(seteuid(OTHER) == 0);
  else if (strcmp(what, "setuid") == 0)
    CHECK(setgid(OTHER) == 0 && setuid(OTHER) == 0);
  else if (strcmp(what, "setresuid") == 0)
    CHECK(setresgid(OTHER, OTHER, OTHER) == 0 && setresuid(OTHER, OTHER, 0) == 0);
  else if (strcmp(what, "setgid") == 0)
    CHECK(setgid(OTHER) == 0);
  else if (strcmp(what, "capset") == 0)
    drop_caps();
  else if (strcmp(what, "undumpable") == 0)
    CHECK(prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_GET_DUMPABLE) == 0);
  else if (strcmp(what, "no-new-privs") == 0)
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  else if (strcmp(what, "chroot") == 0)
    CHECK(chroot("/usr") == 0 && chdir("/") == 0);
  else if (strcmp(what, "empty-root") == 0) {
    const char *empty = guest_tmp("empty-root");
    CHECK(mkdir(empty, 0700) == 0 && chdir(empty) == 0 && rmdir(empty) == 0);
    CHECK(chroot(".") == 0);
    CHECK(setgid(OTHER) == 0 && setuid(OTHER) == 0);
    CHECK(open("/", O_RDONLY) == -1 && errno == EACCES);
  } else if (strcmp(what, "keepcaps") == 0) {
    CHECK(prctl(PR_SET_KEEPCAPS, 1) == 0 && setuid(OTHER) == 0);
  } else
    CHECK(!"known");
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "seteuid";
  int any = strcmp(what, "undumpable") == 0 || strcmp(what, "no-new-privs") == 0;
  if (geteuid() != 0 && !any) {
    printf("SKIP: %s needs root\n", what);
    guest_ok("priv_fork");
    return 0;
  }
  const char *path = guest_tmp("priv-fork");
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(file >= 0 && write(file, "some bytes", 11) == 11);
  CHECK(unlink(path) == 0);
  give_up(what);
  CHECK(tree(2, file) == 7);
  guest_ok("priv_fork");
}
