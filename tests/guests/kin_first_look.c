// build:
// not in clocks: in which order processes come to memory that they share is repeated in serial order only
// env: GERYON_SHARED_FILES=map
// varies
// Proves: a process that maps what others are changing finds in all replicas what its leader finds there, also when
// it looks at once, without a call in between. (Followers went on before they had the turn; SQLite's processes then
// took different ways into one write-ahead log.)
#include "guest.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#define PROCESSES 24
#define ROUNDS 40
struct all {
  uint64_t ticket, hash;
};
static void work(const char *file, int who) {
  int fd = open(file, O_RDWR);
  CHECK(fd >= 0);
  struct all *a = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  uint64_t first = a->ticket, hash = a->hash;
  CHECK(a != MAP_FAILED);
  char line[80];
  for (int i = 0; i < ROUNDS; i++) {
    // (In serial order nobody comes in between.)
    a->hash = guest_mix(a->hash, ++a->ticket * 32 + who);
    if (i % 8 == 0)
      CHECK(write(1, line, snprintf(line, sizeof line, "%d %016llx\n", who, (unsigned long long)a->hash)) > 0);
  }
  CHECK(write(1, line, snprintf(line, sizeof line, "%d began at %llu %016llx\n", who, (unsigned long long)first, (unsigned long long)hash)) > 0);
}
int main(void) {
  const char *file = guest_tmp("kin-first-look");
  int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 4096));
  pid_t of[PROCESSES];
  for (int p = 0; p < PROCESSES; p++) {
    of[p] = fork();
    CHECK(of[p] >= 0);
    if (!of[p]) {
      work(file, p);
      _exit(p);
    }
  }
  for (int p = 0; p < PROCESSES; p++) {
    int status;
    CHECK(waitpid(of[p], &status, 0) == of[p] && WIFEXITED(status) && WEXITSTATUS(status) == p);
  }
  struct all a;
  CHECK(pread(fd, &a, sizeof a, 0) == sizeof a);
  CHECK(!unlink(file));
  guest_ok("kin_first_look");
  return 0;
}
