// build:
// deterministic
// loses
// Proves: waits are answered as the kernel answers them, also when another replica leads: what they cannot ask for,
// children that are stopped and go on, that are in another group, and whose end nobody wants to hear of, or that a wait
// has found without a place to say so. And a wait
// for children of all kinds finds no replica, be it one that was lost.
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static int status;
static void say(const char *what, pid_t child, pid_t found) {
  const char *who = found == child ? "the child" : found > 0 ? "another one" : found == 0 ? "nobody" : strerrorname_np(errno);
  printf("%s: %s, %#x\n", what, who, found > 0 ? status : 0);
  status = 0;
}

static void is_refused(void) {
  siginfo_t info;
  memset(&info, 7, sizeof info);
  say("no such option", 0, waitpid(-1, NULL, 0x100));
  say("no such group", 0, waitpid((pid_t)0x80000000, NULL, 0));
  say("for nothing", 0, waitid(P_ALL, 0, &info, 0));
  // (It is written all the same.)
  printf("and has written: %d %d\n", info.si_signo, info.si_pid);
  say("no such child", 0, waitid(P_PID, 0, &info, WEXITED));
  say("nobody", 0, waitid(9, 1, &info, WEXITED));
  // (Of Geryon's there are children of this kind.)
  say("of all kinds", 0, waitpid(-1, &status, __WALL | WNOHANG));
  say("of other kinds", 0, waitpid(-1, &status, __WCLONE | WNOHANG));
  say("of all kinds", 0, waitpid(-1, &status, __WALL));
}

static pid_t sleeper(void) {
  int ready[2];
  CHECK(pipe(ready) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    CHECK(write(ready[1], "!", 1) == 1);
    for (;;)
      pause();
  }
  char c;
  CHECK(read(ready[0], &c, 1) == 1 && close(ready[0]) == 0 && close(ready[1]) == 0);
  return child;
}

static void is_stopped(void) {
  siginfo_t info;
  pid_t child = sleeper();
  say("runs", child, waitpid(-1, &status, WUNTRACED | WCONTINUED | WNOHANG));
  CHECK(kill(child, SIGSTOP) == 0);
  say("stopped", child, waitpid(-1, &status, WUNTRACED));
  say("once", child, waitpid(child, &status, WUNTRACED | WNOHANG));
  CHECK(kill(child, SIGCONT) == 0);
  say("goes on", child, waitpid(child, &status, WCONTINUED));
  // (In a group whose members' parents are all in it, or in other sessions, this signal stops nobody.)
  CHECK(setpgid(child, 0) == 0 && kill(child, SIGTSTP) == 0);
  CHECK(waitid(P_PID, child, &info, WSTOPPED | WNOWAIT) == 0);
  printf("stopped: %d %d %d\n", info.si_pid == child, info.si_code, info.si_status);
  CHECK(waitid(P_ALL, 0, &info, WSTOPPED) == 0);
  printf("stopped: %d %d %d\n", info.si_pid == child, info.si_code, info.si_status);
  CHECK(kill(child, SIGCONT) == 0 && waitid(P_ALL, 0, &info, WCONTINUED) == 0);
  printf("goes on: %d %d %d\n", info.si_pid == child, info.si_code, info.si_status);
  CHECK(setpgid(child, 0) == 0 && kill(child, SIGTERM) == 0);
  say("in no group", child, waitpid(0, &status, 0));
  say("in its own", child, waitpid(-child, &status, 0));
}

static void is_not_wanted(int flags, void (*handler)(int)) {
  struct sigaction before, act = {.sa_handler = handler, .sa_flags = flags};
  CHECK(sigaction(SIGCHLD, &act, &before) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0)
    _exit(3);
  say("not wanted", child, waitpid(child, &status, 0));
  CHECK(sigaction(SIGCHLD, &before, NULL) == 0);
}

// The kernel has no place to say whom a wait has found: that one is not found again.
static void is_untold(void) {
  pid_t child[2];
  for (int i = 0; i < 2; i++) {
    child[i] = fork();
    CHECK(child[i] >= 0);
    if (child[i] == 0)
      _exit(4);
  }
  say("in a bad place", child[0], syscall(SYS_wait4, child[0], (int *)8, 0, NULL));
  say("without a place", child[1], syscall(SYS_waitid, P_PID, child[1], NULL, WEXITED, NULL));
  for (int i = 0; i < 4; i++) {
    say("once more", child[0], waitpid(child[i % 2], &status, WNOHANG));
    say("of anybody", child[0], waitpid(-1, &status, WNOHANG));
  }
}

int main(void) {
  for (int i = 0; i < 3; i++) {
    is_refused();
    is_stopped();
    is_not_wanted(0, SIG_IGN);
    is_not_wanted(SA_NOCLDWAIT, SIG_DFL);
    // (Others may have been lost meanwhile.)
    is_refused();
    CHECK(fflush(stdout) == 0);
  }
  is_untold();
  guest_ok("recover_waits");
  return 0;
}
