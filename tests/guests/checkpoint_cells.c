// build:
// loses
// Proves: memory full of numbers, threads that sum it up under a lock, lines
// to stdout, to a file and through a pipe: what tests of checkpoints damage.
// With a file's name in argv[1] it waits until that file is there; with a
// number in argv[2] it then reads so many megabytes, and as many in one piece;
// with a file's name in argv[3] it waits again, for that, after half of its lines.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#define CELLS (1 << 20)
#define THREADS 3
#define ROUNDS 12

static uint64_t *cells, sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2];

static void *add(void *arg) {
  size_t me = (uintptr_t)arg;
  for (size_t part = 0; part < 16; part++) {
    uint64_t h = 0;
    for (size_t i = me * 16 + part; i < CELLS; i += THREADS * 16)
      h += cells[i] * (i + 1);
    pthread_mutex_lock(&lock);
    sum += h;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void wait_for(const char *file) {
  while (access(file, F_OK))
    nanosleep(&(struct timespec){0, 5000000}, NULL);
}

int main(int argc, char **argv) {
  char line[64], back[64];
  uint64_t s = 12345, total = 0;
  CHECK(cells = malloc(CELLS * sizeof *cells));
  for (size_t i = 0; i < CELLS; i++)
    cells[i] = guest_rand(&s);
  CHECK(!pipe(pipes));
  const char *path = guest_tmp("cells");
  int file = open(path, O_CREAT | O_TRUNC | O_APPEND | O_RDWR, 0600);
  CHECK(file >= 0);
  if (argc > 1)
    wait_for(argv[1]);
  size_t much = argc > 2 ? (size_t)atol(argv[2]) << 20 : 0;
  char *piece = malloc(much + 65536);
  int zero = open("/dev/zero", O_RDONLY);
  CHECK(piece && zero >= 0);
  // Interruptions by a tracer make reads from this device short, natively as well.
  for (size_t n = 0, got; n < much; n += got)
    CHECK((got = read(zero, piece, 65536)) - 1 < 65536);
  for (size_t n = 0, got; n < much; n += got)
    CHECK((got = read(zero, piece, much - n)) - 1 < much);
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t t[THREADS];
    if (argc > 3 && round == ROUNDS / 2)
      wait_for(argv[3]);
    sum = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
      CHECK(!pthread_create(&t[i], NULL, add, (void *)i));
    for (int i = 0; i < THREADS; i++)
      CHECK(!pthread_join(t[i], NULL));
    total = guest_mix(total, sum);
    int n = snprintf(line, sizeof line, "%d %016llx\n", round,
                     (unsigned long long)total);
    CHECK(write(1, line, n) == n && write(file, line, n) == n);
    CHECK(write(pipes[1], line, n) == n && read(pipes[0], back, n) == n);
    CHECK(!memcmp(line, back, n));
  }
  CHECK(lseek(file, 0, SEEK_SET) == 0);
  char all[4096];
  ssize_t n = read(file, all, sizeof all);
  int lines = 0;
  for (ssize_t i = 0; i < n; i++)
    lines += all[i] == '\n';
  CHECK(lines == ROUNDS && !unlink(path));
  guest_ok("checkpoint_cells");
}
