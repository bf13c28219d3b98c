// build:
// deterministic
// loses
// Proves: a thread's name may be bytes of any kind: those that look into /proc find its state there all the same.
// (What they read was no text: a replica that slept where the others went on was never found. That is in policies.)
#include "guest.h"
#include <sys/prctl.h>
#include <sys/wait.h>
int main(void) {
  CHECK(prctl(PR_SET_NAME, "\xd4\xbb) \xff\n(S 1") == 0);
  char name[16];
  CHECK(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "\xd4\xbb) \xff\n(S 1") == 0);
  for (int i = 0; i < 20; i++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
      _exit(i);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == i);
    printf("child %d\n", i);
    fflush(stdout);
  }
  guest_ok("proc_odd_name");
}
