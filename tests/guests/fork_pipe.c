// build:
// deterministic
// loses
// Proves: parent and child talk over two pipes; both write to stdout in turn.
#include "guest.h"
#include <sys/wait.h>
int main(void) {
  int a[2], b[2];
  CHECK(pipe(a) == 0 && pipe(b) == 0);
  fflush(stdout);
  pid_t pid = fork();
  CHECK(pid >= 0);
  int in = pid ? b[0] : a[0], out = pid ? a[1] : b[1];
  close(pid ? b[1] : a[1]);
  close(pid ? a[0] : b[0]);
  for (int i = 0; i < 50; i++) {
    int v = i;
    if (pid) {
      printf("parent %d\n", i);
      fflush(stdout);
      CHECK(write(out, &v, 4) == 4 && read(in, &v, 4) == 4 && v == i * 2);
    } else {
      CHECK(read(in, &v, 4) == 4 && v == i);
      printf("child %d\n", i);
      fflush(stdout);
      v *= 2;
      CHECK(write(out, &v, 4) == 4);
    }
  }
  if (pid == 0)
    _exit(0);
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  guest_ok("fork_pipe");
}
