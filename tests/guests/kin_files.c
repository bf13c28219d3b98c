// build: -pthread
// not in clocks: in which order processes come to memory that they share is repeated in serial order only
// env: GERYON_SHARED_FILES=map
// varies
// Proves: processes that map one file each for itself (POSIX shared memory, a file, a named semaphore) come to it in
// one order in all replicas, and find there what others have written by calls. (The second mmap was refused.)
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>
#define PROCESSES 3
static int rounds = 200;
struct all {
  uint64_t ticket, hash, file;
};
static void *map(int fd, int protection) {
  CHECK(fd >= 0);
  void *p = mmap(NULL, 8192, protection, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && !close(fd));
  return p;
}
static void work(const char *shm, const char *file, const char *sem, int who) {
  struct all *a = map(shm_open(shm, O_RDWR, 0), PROT_READ | PROT_WRITE);
  const struct all *seen = map(shm_open(shm, O_RDONLY, 0), PROT_READ);
  struct all *b = map(open(file, O_RDWR), PROT_READ | PROT_WRITE);
  sem_t *s = sem_open(sem, 0);
  CHECK(s != SEM_FAILED);
  uint64_t seed = who + 1;
  for (int i = 0; i < rounds; i++) {
    uint64_t t = __atomic_fetch_add(&a->ticket, 1, __ATOMIC_SEQ_CST);
    guest_work(&seed, 2000);
    CHECK(!sem_wait(s));
    a->hash = guest_mix(a->hash, t * 8 + who);
    b->hash = guest_mix(b->hash, seen->hash + b->file);
    CHECK(!sem_post(s));
    if (i % (rounds / 4) == 25) {
      int fd = open(file, O_RDWR);
      uint64_t word = t;
      CHECK(fd >= 0 && pwrite(fd, &word, 8, offsetof(struct all, file)) == 8);
      CHECK(pread(fd, &word, 8, offsetof(struct all, hash)) == 8 && !close(fd));
      char line[80];
      int n = snprintf(line, sizeof line, "%d %016llx %016llx\n", who, (unsigned long long)word, (unsigned long long)b->hash);
      CHECK(write(1, line, n) == n);
    }
  }
}
int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  char shm[64], sem[64];
  char file[4096];
  if (argc > 1)
    snprintf(file, sizeof file, "/dev/shm/guest-kin-f-%d", (int)getpid());
  else
    snprintf(file, sizeof file, "%s", guest_tmp("kin-files"));
  snprintf(shm, sizeof shm, "/guest-kin-%d", (int)getpid());
  snprintf(sem, sizeof sem, "/guest-kin-s-%d", (int)getpid());
  int fd = shm_open(shm, O_RDWR | O_CREAT | O_EXCL, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 8192) && !close(fd));
  fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, 8192) && !close(fd));
  CHECK(sem_open(sem, O_CREAT | O_EXCL, 0600, 1) != SEM_FAILED);
  pid_t of[PROCESSES];
  for (int p = 0; p < PROCESSES; p++) {
    of[p] = fork();
    CHECK(of[p] >= 0);
    if (!of[p]) {
      work(shm, file, sem, p);
      _exit(p);
    }
  }
  for (int p = 0; p < PROCESSES; p++) {
    int status;
    CHECK(waitpid(of[p], &status, 0) == of[p] && WIFEXITED(status) && WEXITSTATUS(status) == p);
  }
  struct all *a = map(shm_open(shm, O_RDWR, 0), PROT_READ | PROT_WRITE);
  printf("%llu %016llx\n", (unsigned long long)a->ticket, (unsigned long long)a->hash);
  CHECK(!shm_unlink(shm) && !sem_unlink(sem) && !unlink(file));
  guest_ok("kin_files");
}
