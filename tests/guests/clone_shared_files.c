// build:
// args: files
// args: fs
// args: both
// args: vfork-files
// args: thread-beside
// deterministic
// Proves: a child made by clone with CLONE_FILES and without shared memory opens and closes its
// parent's descriptors, with CLONE_FS it changes its parent's directory and umask; output goes on
// behind that. (A follower's child closed the table that it shared with everybody: all output was
// lost, with status 0.) What the child needs to begin is never among those descriptors.
#include "guest.h"
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static int stop;
static void *beside(void *arg) {
  (void)arg;
  while (!__sync_fetch_and_add(&stop, 0))
    usleep(100);
  return NULL;
}
static pid_t make(int flags) { return syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0); }
static int spawned(void *arg) {
  (void)arg;
  if (dup2(1, 33) != 33)
    _exit(1);
  _exit(0);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "both";
  int files = strcmp(what, "fs") != 0, fs = strcmp(what, "fs") == 0 || strcmp(what, "both") == 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  char start[PATH_MAX], now[PATH_MAX];
  CHECK(getcwd(start, sizeof start));
  if (strcmp(what, "vfork-files") == 0) {
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int st = -1;
    pid_t pid = clone(spawned, stack + 65536, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, NULL);
    CHECK(pid > 0 && waitpid(pid, &st, 0) == pid && st == 0);
    CHECK(fcntl(33, F_GETFD) == 0);
    guest_ok("clone_shared_files");
    return 0;
  }
  pthread_t t;
  int thread = strcmp(what, "thread-beside") == 0;
  if (thread)
    CHECK(pthread_create(&t, NULL, beside, NULL) == 0);
  umask(022);
  for (int i = 0; i < 20; i++) {
    int ready[2];
    CHECK(pipe(ready) == 0);
    // The lowest free number: the child that is being born must not have it.
    int low = open("/dev/null", O_RDONLY);
    CHECK(low == ready[1] + 1 && close(low) == 0);
    pid_t pid = make((files ? CLONE_FILES : 0) | (fs ? CLONE_FS : 0));
    CHECK(pid >= 0);
    if (pid == 0) {
      char byte = 'x';
      if (i == 0)
        printf("child\n");
      int fd = open("/dev/zero", O_RDONLY);
      CHECK(fd >= 0 && dup2(fd, 50) == 50 && close(fd) == 0);
      CHECK(chdir("/usr") == 0);
      umask(077);
      // It maps a file of its own, and forks as usual.
      void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 50, 0);
      CHECK(at != MAP_FAILED && *(char *)at == 0);
      pid_t own = fork();
      if (own == 0)
        _exit(3);
      int st;
      CHECK(waitpid(own, &st, 0) == own && WEXITSTATUS(st) == 3);
      CHECK(write(ready[1], &byte, 1) == 1);
      _exit(7);
    }
    int after = open("/dev/null", O_RDONLY);
    if (!files) // (else the child opens and closes beside)
      CHECK(after == low);
    CHECK(close(after) == 0);
    char byte;
    int st = -1;
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(waitpid(pid, &st, 0) == pid && WIFEXITED(st) && WEXITSTATUS(st) == 7);
    CHECK((fcntl(50, F_GETFD) == 0) == files);
    CHECK(getcwd(now, sizeof now));
    CHECK((strcmp(now, "/usr") == 0) == fs);
    CHECK(umask(022) == (fs ? 077u : 022u));
    CHECK(chdir(start) == 0);
    if (files)
      CHECK(close(50) == 0);
    CHECK(close(ready[0]) == 0 && close(ready[1]) == 0);
  }
  if (thread) {
    __sync_fetch_and_add(&stop, 1);
    CHECK(pthread_join(t, NULL) == 0);
  }
  guest_ok("clone_shared_files");
}
