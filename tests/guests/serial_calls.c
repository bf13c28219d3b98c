// build: -pthread -O2
// deterministic
// loses
// Proves: who does nothing but make calls that never block keeps nobody from running: in serial order such calls keep the turn, and of
// some nothing is logged.
#include "guest.h"
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { MAPS, MASKS, ADVICE, PROTECTION, THREAD, PROCESS, TIME, WAKES, KINDS };

static void *call(void *arg) {
  int kind = *(int *)arg, word = 0;
  const int rw = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS;
  char *page = mmap(NULL, 4096, rw, own, -1, 0);
  struct timespec now;
  sigset_t none;
  sigemptyset(&none);
  CHECK(page != MAP_FAILED);
  for (;;)
    switch (kind) {
    case MAPS:
      CHECK(!munmap(mmap(NULL, 4096, rw, own, -1, 0), 4096));
      break;
    case MASKS:
      CHECK(!pthread_sigmask(SIG_BLOCK, &none, NULL));
      break;
    case ADVICE:
      CHECK(!madvise(page, 4096, MADV_DONTNEED));
      break;
    case PROTECTION:
      CHECK(!mprotect(page, 4096, rw));
      break;
    case THREAD:
      CHECK(syscall(SYS_gettid) > 0);
      break;
    case PROCESS:
      CHECK(syscall(SYS_getpid) > 0);
      break;
    case TIME:
      CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
      break;
    case WAKES:
      CHECK(!syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
      break;
    }
}

int main(void) {
  for (int kind = 0; kind < KINDS; kind++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      pthread_t t;
      for (int i = 0; i < 2; i++)
        CHECK(!pthread_create(&t, NULL, call, &kind));
      usleep(10000);
      _exit(10 + kind);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    printf("kind %d: %d\n", kind, WEXITSTATUS(status));
    fflush(stdout);
  }
  guest_ok("serial_calls");
}
