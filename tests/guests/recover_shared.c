// build:
// args: 6
// deterministic
// loses
// Proves: processes that share memory still do when they have been copied, with each other and with nobody else:
// what one writes the others read, whoever is killed meanwhile (a replica was never replaced when its processes
// shared memory; copies that were made one after the other would find in it what came later).
#define _GNU_SOURCE
#include "guest.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { WORKERS = 3, PAGE = 4096, TABLE = 16 * PAGE, LARGE = 64 << 20 };

static unsigned *table;
static unsigned char *large;

static void *share(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(at != MAP_FAILED);
  return at;
}

// A worker: adds what it finds to what it has had so far, and says so in the memory alone.
static void work(int n, int ask, int answer) {
  unsigned sum = 0, round;
  while (read(ask, &round, sizeof round) == sizeof round) {
    sum = sum * 31 + table[round % (TABLE / 2 / sizeof *table)];
    table[TABLE / 2 / sizeof *table + n] = sum;
    large[((size_t)round * 77777 * PAGE + n) % LARGE] += n + 1;
    CHECK(write(answer, &sum, sizeof sum) == sizeof sum);
  }
  _exit(n);
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 6;
  table = share(TABLE);
  large = share(LARGE);
  // A part that nobody may write to any more is shared all the same.
  unsigned *last = table + (TABLE - PAGE) / sizeof *table;
  *last = 4711;
  CHECK(mprotect(last, PAGE, PROT_READ) == 0);
  int ask[WORKERS][2], answer[WORKERS][2];
  pid_t pid[WORKERS] = {0};
  unsigned total = 0;
  for (unsigned round = 0; round < rounds; round++) {
    int n = round % WORKERS;
    if (round % 40 < WORKERS) {
      // It is replaced by a younger one, which finds what its predecessor has left.
      if (pid[n]) {
        int status;
        close(ask[n][1]);
        close(answer[n][0]);
        CHECK(waitpid(pid[n], &status, 0) == pid[n] && WEXITSTATUS(status) == n);
      }
      CHECK(pipe(ask[n]) == 0 && pipe(answer[n]) == 0);
      pid[n] = fork();
      CHECK(pid[n] >= 0);
      if (pid[n] == 0) {
        // (Else the others would not find the ends of their pipes.)
        for (int i = 0; i < WORKERS; i++)
          if (i != n && pid[i] > 0)
            close(ask[i][1]);
        close(ask[n][1]);
        work(n, ask[n][0], answer[n][1]);
      }
      close(ask[n][0]);
      close(answer[n][1]);
    }
    table[round % (TABLE / 2 / sizeof *table)] = round * 2654435761u;
    CHECK(write(ask[n][1], &round, sizeof round) == sizeof round);
    struct timespec nap = {0, 5000000};
    CHECK(nanosleep(&nap, NULL) == 0);
    unsigned sum;
    CHECK(read(answer[n][0], &sum, sizeof sum) == sizeof sum);
    CHECK(table[TABLE / 2 / sizeof *table + n] == sum);
    CHECK(*last == 4711);
    total = total * 17 + sum;
  }
  for (int n = 0; n < WORKERS && pid[n]; n++) {
    int status;
    close(ask[n][1]);
    CHECK(waitpid(pid[n], &status, 0) == pid[n] && WEXITSTATUS(status) == n);
  }
  unsigned found = 0;
  for (size_t at = 0; at < LARGE; at += PAGE)
    for (int n = 0; n < WORKERS; n++)
      found = found * 5 + large[at + n];
  printf("%u %u\n", total, found);
  guest_ok("recover_shared");
}
