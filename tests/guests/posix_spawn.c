// build:
// deterministic
// loses
// async
// Proves: posix_spawn with file actions and attributes (CLONE_VFORK on its own
// stack), also a program that does not exist.
#include "guest.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;
int main(void) {
  int p[2], st;
  pid_t pid;
  CHECK(pipe2(p, O_CLOEXEC) == 0);
  posix_spawn_file_actions_t fa;
  CHECK(!posix_spawn_file_actions_init(&fa));
  CHECK(!posix_spawn_file_actions_adddup2(&fa, p[1], 1));
  CHECK(!posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0));
  posix_spawnattr_t at;
  CHECK(!posix_spawnattr_init(&at));
  sigset_t def;
  sigemptyset(&def);
  sigaddset(&def, SIGPIPE);
  CHECK(!posix_spawnattr_setsigdefault(&at, &def));
  CHECK(!posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGDEF));
  char *av[] = {"sh", "-c", "cat; echo spawned $1", "sh", "arg", NULL};
  CHECK(!posix_spawnp(&pid, "sh", &fa, &at, av, environ));
  close(p[1]);
  char buf[64];
  ssize_t n = 0, r;
  while ((r = read(p[0], buf + n, sizeof buf - n)) > 0)
    n += r;
  CHECK(n == 12 && !memcmp(buf, "spawned arg\n", 12));
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  CHECK(posix_spawn(&pid, "/no/such", NULL, NULL, av, environ) == ENOENT);
  guest_ok("posix_spawn");
}
