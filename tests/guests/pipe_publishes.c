// build: -pthread
// loses
// delayed
// Proves: what a thread, or a process with which memory is shared, has stored before it writes to a pipe is there
// for whoever has read of that, in every replica. Nothing in the log says so but that all have confirmed the write
// before it was made (once a majority was enough: in the third replica the reader came first).
#define _GNU_SOURCE
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { ROUNDS = 300 };

static int there[2], back[2];
static volatile unsigned *published;

static void give(int to) { CHECK(write(to, "x", 1) == 1); }

static void await(int from) {
  char c;
  CHECK(read(from, &c, 1) == 1);
}

static void *writes(void *unused) {
  for (unsigned i = 1; i <= ROUNDS; i++) {
    *published = i * i;
    give(there[1]);
    await(back[0]);
  }
  return unused;
}

static void reads(const char *who) {
  unsigned sum = 0;
  for (unsigned i = 1; i <= ROUNDS; i++) {
    await(there[0]);
    sum = sum * 31 + *published;
    give(back[1]);
  }
  printf("%s: %u\n", who, sum);
  fflush(stdout);
}

int main(void) {
  CHECK(pipe(there) == 0 && pipe(back) == 0);
  published = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(published != MAP_FAILED);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    writes(NULL);
    _exit(0);
  }
  reads("a process");
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);

  static unsigned own;
  published = &own;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, writes, NULL) == 0);
  reads("a thread");
  CHECK(pthread_join(thread, NULL) == 0);
  guest_ok("pipe_publishes");
}
