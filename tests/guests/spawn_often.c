// build:
// deterministic
// loses
// async
// Proves: programs are started one behind the other, and nothing is confirmed (--verify async): a child that runs in its
// parent's memory waits for its siblings before it leaves that. (The leader's had its own program before a follower's
// was born; that one waited for the end of its log, and its parent for it, for ever.)
#include "guest.h"
#include <spawn.h>
#include <sys/wait.h>
extern char **environ;
int main(void) {
  for (int i = 0; i < 40; i++) {
    char *av[] = {"true", NULL};
    pid_t pid;
    int st, err = posix_spawnp(&pid, i % 4 ? "true" : "/no/such", NULL, NULL, av, environ);
    CHECK(err == (i % 4 ? 0 : ENOENT));
    if (!err)
      CHECK(waitpid(pid, &st, 0) == pid && st == 0);
    printf("%d %d\n", i, err);
  }
  guest_ok("spawn_often");
}
