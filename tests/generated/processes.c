// Processes: children that take a few steps of their own, end in all ways, and are waited for in all ways.
#include "calls.h"
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { DEEPEST = 2 };

static void print_status(const char *what, int status) {
  if (WIFEXITED(status))
    print("  %s: exit %d\n", what, WEXITSTATUS(status));
  else if (WIFSIGNALED(status))
    print("  %s: signal %d%s\n", what, WTERMSIG(status), WCOREDUMP(status) ? ", core" : "");
  else if (WIFSTOPPED(status))
    print("  %s: stopped by %d\n", what, WSTOPSIG(status));
  else
    print("  %s: %#x\n", what, status);
}

// Waits for a child in one of all ways, until it has ended. (A wait without a place for the status, or with a bad one,
// reaps it all the same.)
static void reap(pid_t child) {
  int status = -1;
  siginfo_t info;
  memset(&info, 0, sizeof info);
  switch (below(6)) {
  case 0:
    CALL_HOW(NUMBER | ARGUMENTS, wait4, child, nowhere(), 0, NULL);
    break;
  case 1:
    memset(me->loose, 0, 256);
    CALL_HOW(NUMBER | ARGUMENTS, wait4, -1, &status, __WALL, one_in(4) ? nowhere() : me->loose);
    print_status("wait", status);
    break;
  case 2:
    CALL_HOW(ARGUMENTS, waitid, P_PID, child, &info, WEXITED | WNOWAIT, NULL);
    print("  child %d, code %d, status %d\n", info.si_pid == child, info.si_code, info.si_status);
    CALL_HOW(ARGUMENTS, waitid, P_ALL, 0, one_in(4) ? nowhere() : one_in(3) ? NULL : me->loose, WEXITED, NULL);
    break;
  case 3:
    CALL_HOW(ARGUMENTS, waitid, PICK(int, P_PID, 77, -1), child, &info, PICK(int, WEXITED, 0, WNOHANG, 0x100), NULL);
    break;
  case 4:
    CALL_HOW(NUMBER | ARGUMENTS, wait4, child, &status, PICK(int, 0, 0x100, WUNTRACED | WCONTINUED, 0x20000000), NULL);
    print_status("wait", status);
    break;
  default:
    CALL_HOW(NUMBER | ARGUMENTS, wait4, 0, &status, 0, NULL);
    print_status("wait", status);
  }
  status = -1;
  pid_t again = waitpid(child, &status, 0);
  print("  then %s\n", again == child ? "the child" : strerrorname_np(errno));
  if (again == child)
    print_status("it", status);
  CALL_HOW(NUMBER | ARGUMENTS, wait4, one_in(2) ? child : -1, NULL, PICK(int, WNOHANG, 0, 0x100), NULL);
}

// What a child does, and how it ends.
__attribute__((noreturn)) static void be_child(void) {
  me->depth++;
  me->seed = mixed(me->seed, me->step + 1000);
  unsigned many = below(6);
  int status = below(256), way = below(6);
  print("  child of %d steps\n", many);
  for (unsigned i = 0; i < many; i++)
    one_step(i);
  print("  child ends\n");
  flush();
  if (way == 0) {
    signal(SIGTERM, SIG_DFL);
    reset_signals();
    raise(PICK(int, SIGTERM, SIGKILL));
  }
  if (way == 1)
    syscall(SYS_exit, status);
  _exit(status);
}

static void do_fork(void) {
  if (me->depth >= DEEPEST)
    return;
  flush();
  pid_t child = one_in(3) ? (pid_t)syscall(SYS_clone, SIGCHLD | (one_in(2) ? CLONE_FS : 0), 0, 0, 0, 0) : one_in(2) ? (pid_t)syscall(SYS_fork) : fork();
  CHECK(child >= 0);
  if (child == 0)
    be_child();
  print("%u child\n", me->step);
  reap(child);
}
static void do_vfork(void) {
  flush();
  // (What the child does in its parent's memory: little.)
  volatile int status = (int)below(256);
  pid_t child = vfork();
  CHECK(child >= 0);
  if (child == 0)
    _exit(status);
  print("%u vfork\n", me->step);
  reap(child);
}
static void do_exec(void) {
  if (me->depth >= DEEPEST)
    return;
  flush();
  char seed[24], depth[24], folder[16];
  snprintf(seed, sizeof seed, "%lu", below(1000000));
  snprintf(depth, sizeof depth, "%d", me->depth + 1);
  snprintf(folder, sizeof folder, "x%d.%u", me->depth, me->step);
  const char *argv[] = {program, seed, PICK(const char *, "0", "3", "20"), NULL};
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    // (The program makes a folder of its own, and counts on finding none.)
    if (fchdir(TOP_FD) != 0 || mkdir(folder, 0700) != 0 || chdir(folder) != 0)
      _exit(98);
    reset_signals();
    setenv("CALLS_DEPTH", depth, 1);
    execve(program, (char **)argv, environ);
    _exit(97);
  }
  print("%u exec %s %s\n", me->step, seed, argv[2]);
  reap(child);
}
static void odd_exec(void) {
  // That fail: what is there is no program.
  const char *p = path();
  const char *argv[] = {"one", "two", NULL};
  void *a = one_in(3) ? nowhere() : (void *)argv;
  if (one_in(2))
    CALL_HOW(ARGUMENTS, execve, p, a, one_in(3) ? nowhere_nested() : NULL);
  else
    CALL_HOW(ARGUMENTS, execveat, one_in(2) ? fd() : AT_FDCWD, p, a, NULL, PICK(int, 0, AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, 1));
}
static void odd_wait(void) {
  switch (below(3)) {
  case 0:
    CALL_HOW(ARGUMENTS | NUMBER, wait4, PICK(long, -1, 0, 0x3fffff0, INT_MIN), nowhere(), PICK(int, 0, WNOHANG, 0x100, -1), NULL);
    break;
  case 1:
    CALL(waitid, PICK(int, P_ALL, P_PID, P_PGID, 9), PICK(long, 0, 0x3fffff0, -1), one_in(2) ? nowhere() : NULL,
         PICK(int, WEXITED, WEXITED | WNOHANG, 0, WNOWAIT, -1), NULL);
    break;
  default:
    CALL_HOW(ARGUMENTS, kill, PICK(long, 0x3fffff0, INT_MIN), PICK(int, 0, SIGTERM, 65));
  }
}

// A child that is told what to do by signals.
static void do_signals(void) {
  flush();
  int ready[2];
  if (pipe(ready) != 0)
    return;
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    signal(SIGTERM, SIG_DFL), signal(SIGUSR1, SIG_DFL);
    reset_signals();
    CHECK(write(ready[1], "!", 1) == 1);
    for (;;)
      pause();
  }
  char c;
  CHECK(read(ready[0], &c, 1) == 1);
  close(ready[0]), close(ready[1]);
  print("%u a child that waits\n", me->step);
  int status;
  if (one_in(2)) {
    CALL_HOW(ARGUMENTS, kill, child, SIGSTOP);
    CHECK(waitpid(child, &status, WUNTRACED) == child);
    print_status("stop", status);
    CALL_HOW(ARGUMENTS, kill, child, SIGCONT);
    CHECK(waitpid(child, &status, WCONTINUED) == child);
    print_status("cont", status);
  }
  print("  not yet: %d\n", waitpid(child, &status, WNOHANG));
  CALL_HOW(ARGUMENTS, kill, child, 0);
  CALL_HOW(ARGUMENTS, setpgid, child, PICK(long, 0, child, -1));
  CALL_HOW(ARGUMENTS, kill, child, PICK(int, SIGTERM, SIGKILL, SIGUSR1));
  reap(child);
}

// What a child writes its parent reads, to the end.
static void do_pipe(void) {
  flush();
  int p[2];
  if (pipe(p) != 0)
    return;
  unsigned many = 1 + below(5), size = 1 + below(20000);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    close(p[0]);
    for (unsigned i = 0; i < many; i++)
      for (unsigned done = 0; done < size;) {
        ssize_t n = write(p[1], me->arena + 9 * PAGE, size - done);
        CHECK(n > 0);
        done += n;
      }
    _exit(getppid() > 1 ? 7 : 8);
  }
  close(p[1]);
  size_t all = 0;
  for (ssize_t n; (n = read(p[0], me->arena + 9 * PAGE, 9 * PAGE)) > 0;)
    all += n;
  close(p[0]);
  fill();
  print("%u %zu bytes from a child\n", me->step, all);
  reap(child);
}
static void nobody_waits(void) {
  // Children whose end is ignored.
  flush();
  struct sigaction before, ignored = {.sa_handler = SIG_IGN};
  CHECK(sigaction(SIGCHLD, &ignored, &before) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0)
    _exit(3);
  pid_t r = waitpid(child, NULL, 0);
  print("%u nobody waits: %s\n", me->step, r == -1 ? strerrorname_np(errno) : "found");
  CHECK(sigaction(SIGCHLD, &before, NULL) == 0);
}

const struct action process_actions[] = {
    {"fork", do_fork, 4, 0},
    {"vfork", do_vfork, 1, 0},
    {"exec", do_exec, 1, 0},
    {"odd exec", odd_exec, 1, 0},
    {"odd wait", odd_wait, 2, 0},
    {"signals", do_signals, 1, 0},
    {"pipe", do_pipe, 1, 0},
    {"nobody waits", nobody_waits, 1, 0},
    {0},
};
