// build:
// descends
// Proves: memory that a program keeps from its forks (V8's heap, keys) is there in a replica that is made anew, and is kept
// from forks made behind that, too.
#define _GNU_SOURCE
#include "guest.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 25, PAGES = 4 };
#define BYTES ((size_t)PAGES * 4096)

static uint64_t *left_out, *emptied;

static void nap(long us) {
  struct timespec t = {0, us * 1000};
  nanosleep(&t, NULL);
}

static void *map(int advice) {
  void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  CHECK(!madvise(p, BYTES, advice));
  return p;
}

// In a forked child: 0 if the one is not there and the other is empty.
static int child(void) {
  unsigned char in_core[PAGES];
  if (!mincore(left_out, BYTES, in_core) || errno != ENOMEM)
    return 1;
  for (size_t i = 0; i < BYTES / 8; i++)
    if (emptied[i])
      return 2;
  return 0;
}

static void *work(void *arg) {
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t i = 0; i < BYTES / 8; i++) {
      CHECK(left_out[i] == round * i);
      CHECK(emptied[i] == round + i);
      left_out[i] += i;
      emptied[i]++;
    }
    nap(20000);
  }
  return arg;
}

int main(void) {
  left_out = map(MADV_DONTFORK);
  emptied = map(MADV_WIPEONFORK);
  for (size_t i = 0; i < BYTES / 8; i++)
    emptied[i] = i;
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, work, NULL));
  for (int i = 0; i < 4; i++) {
    nap(100000);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
      _exit(child());
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  CHECK(!pthread_join(t, NULL));
  guest_ok("recover_apart");
}
