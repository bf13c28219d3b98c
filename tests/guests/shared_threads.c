// build: -pthread
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: threads that meet in mutexes and atomic instructions inside a file that is mapped to be shared and
// writable find there what the leader's threads found, and the file has it. (It was refused with ENODEV.)
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#define THREADS 2
#define ROUNDS 400
struct all {
  pthread_mutex_t m;
  uint64_t ticket, sum, done;
  uint64_t seen[THREADS * ROUNDS];
};
static struct all *a;
static void *work(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t t = __atomic_fetch_add(&a->ticket, 1, __ATOMIC_SEQ_CST);
    guest_work(&seed, 500);
    CHECK(!pthread_mutex_lock(&a->m));
    a->sum += t;
    a->seen[a->done++] = (uintptr_t)arg;
    CHECK(!pthread_mutex_unlock(&a->m));
  }
  return NULL;
}
int main(void) {
  const char *path = guest_tmp("shared-threads");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, sizeof *a));
  a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(a != MAP_FAILED && !pthread_mutex_init(&a->m, NULL));
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  uint64_t n = THREADS * ROUNDS, by[THREADS] = {0};
  for (uint64_t i = 0; i < n; i++)
    by[a->seen[i]]++;
  CHECK(a->done == n && a->sum == n * (n - 1) / 2 && by[0] == ROUNDS);
  CHECK(!msync(a, sizeof *a, MS_SYNC));
  struct all *b = malloc(sizeof *b);
  CHECK(b && pread(fd, b, sizeof *b, 0) == sizeof *b && b->sum == a->sum && b->ticket == n);
  CHECK(!memcmp(a->seen, b->seen, sizeof a->seen));
  CHECK(!munmap(a, sizeof *a) && !close(fd) && !unlink(path));
  guest_ok("shared_threads");
}
