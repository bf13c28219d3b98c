// build: -pthread
// env: GERYON_SHARED_FILES=map
// deterministic
// args: 40
// ascends
// Proves: two threads that map files again and again, at most moments with others mapped, and change them by
// stores and calls, have the same in them in every replica, however often they come and go.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#define N 20000
static int rounds;
static char base[4096];
static void *work(void *arg) {
  int me = (int)(uintptr_t)arg;
  char path[4100];
  snprintf(path, sizeof path, "%s%d", base, me);
  uint64_t seed = me + 1, hash = me;
  for (int i = 0; i < rounds; i++) {
    int fd = open(path, O_RDWR | O_CREAT | (i % 3 ? 0 : O_TRUNC), 0600);
    CHECK(fd >= 0 && !ftruncate(fd, N));
    unsigned char *p = mmap(NULL, N, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    for (int k = 0; k < 100; k++)
      p[guest_rand(&seed) % N] += i;
    uint64_t at = guest_rand(&seed) % (N - 8);
    CHECK(pwrite(fd, &at, 8, at) == 8 && !memcmp(p + at, &at, 8));
    CHECK(!msync(p, N, MS_SYNC));
    hash = guest_hash(hash, p, N);
    if (i % 4 == 1) {
      CHECK(!ftruncate(fd, 5000) && !ftruncate(fd, N) && p[6000] == 0);
    }
    unsigned char *q = mremap(p, N, 2 * N, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED && lseek(fd, 9, SEEK_SET) == 9 && write(fd, q + 4096, 100) == 100);
    hash = guest_hash(hash, q, N);
    CHECK(!munmap(q, 2 * N) && !close(fd));
  }
  unlink(path);
  return (void *)(uintptr_t)hash;
}
int main(int argc, char **argv) {
  rounds = argc > 1 ? atoi(argv[1]) : 40;
  pthread_t t[2];
  void *hash[2];
  snprintf(base, sizeof base, "%s", guest_tmp("shared-many"));
  for (uintptr_t i = 0; i < 2; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  for (int i = 0; i < 2; i++)
    CHECK(!pthread_join(t[i], &hash[i]));
  printf("%lx %lx\n", (long)hash[0], (long)hash[1]);
  guest_ok("shared_many");
}
