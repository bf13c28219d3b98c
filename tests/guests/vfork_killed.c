// build:
// args: SIGTERM
// args: SIGKILL
// args: crash
// deterministic
// loses
// Proves: a vfork's child may end by a signal that it sends itself, or that an instruction raises. (Its followers waited
// for the end of that call, and their parents with them. And its end was taken for the program's: who was lost behind it was
// not missed, and nothing was found out about a second crash.)
#include "guest.h"
#include <signal.h>
#include <sys/wait.h>
static volatile int stored;
static volatile int *volatile nowhere;
int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "SIGTERM";
  const int crashes = strcmp(how, "crash") == 0;
  const int signal = crashes ? SIGSEGV : strcmp(how, "SIGKILL") == 0 ? SIGKILL : SIGTERM;
  for (volatile int i = 1; i <= 20; i++) {
    pid_t pid = vfork();
    if (pid == 0) {
      stored = i;
      if (crashes)
        *nowhere = i;
      kill(getpid(), signal);
      _exit(3);
    }
    int st = 0;
    CHECK(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) && WTERMSIG(st) == signal);
    CHECK(stored == i);
  }
  guest_ok("vfork_killed");
}
