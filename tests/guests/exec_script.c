// build:
// deterministic
// loses
// Proves: exec of a #! script, of one without #! (ENOEXEC), of a directory.
#include "guest.h"
#include <fcntl.h>
#include <sys/wait.h>
static int run(const char *path) {
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    execl(path, path, "arg", (char *)NULL);
    _exit(100 + (errno == ENOEXEC) + 2 * (errno == EACCES));
  }
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st));
  return WEXITSTATUS(st);
}
int main(void) {
  const char *path = guest_tmp("script");
  const char *text[2] = {"#!/bin/sh -e\necho \"script $1\"\nexit 8\n", "plain\n"};
  for (int i = 0; i < 2; i++) {
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0700);
    CHECK(fd >= 0);
    CHECK(write(fd, text[i], strlen(text[i])) > 0 && close(fd) == 0);
    CHECK(run(path) == (i == 0 ? 8 : 101));
  }
  CHECK(unlink(path) == 0 && run("/tmp") == 102);
  guest_ok("exec_script");
}
