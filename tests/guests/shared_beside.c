// build: -pthread
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: what is stored in a file that is mapped to be shared is compared while other threads sleep, wait for
// each other and take locks without end. (In clocks nothing was compared then, and nobody was told. Given three
// more files, it waits before each step until they are there; a word more, and a thread computes meanwhile, and
// makes no call.)
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static char *shared;
static long taken, never;
static volatile long computed;
static sem_t begun;
static void *sleeps(void *a) {
  pthread_mutex_lock(&other);
  while (!never)
    pthread_cond_wait(&cond, &other);
  return a;
}
static void *locks(void *a) {
  for (;;) {
    pthread_mutex_lock(&lock);
    // It stores to what another thread synchronises.
    shared[16 + taken++ % 64]++;
    pthread_mutex_unlock(&lock);
    if (taken % 100 == 0)
      sched_yield();
  }
  return a;
}
static void *reads(void *a) {
  char c;
  int *ends = a;
  CHECK(read(ends[0], &c, 1) == -1);
  return a;
}
static void *computes(void *a) {
  CHECK(!sem_post(&begun));
  for (;;)
    computed++;
  return a;
}
static void wait_for(const char *path) {
  while (path && access(path, F_OK))
    usleep(2000);
}
int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : guest_tmp("shared-beside");
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2];
  CHECK(fd >= 0 && !ftruncate(fd, 8192) && !pipe(ends));
  shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(shared != MAP_FAILED && p != MAP_FAILED);
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, sleeps, NULL) && !pthread_create(&t, NULL, locks, NULL));
  CHECK(!pthread_create(&t, NULL, reads, ends));
  if (argc > 4)
    // (One that has not begun stands.)
    CHECK(!sem_init(&begun, 0, 0) && !pthread_create(&t, NULL, computes, NULL) && !sem_wait(&begun));
  for (int i = 0; i < 5; i++) {
    p[1 + i] = 'b';
    CHECK(!msync(p, 8192, MS_SYNC));
  }
  p[0] = 'm';
  wait_for(argc > 2 ? argv[2] : NULL);
  CHECK(!munmap(p, 8192) && pwrite(fd, "o", 1, 7) == 1);
  wait_for(argc > 3 ? argv[3] : NULL);
  pthread_mutex_lock(&lock);
  CHECK(shared[0] == 'm' && shared[5] == 'b' && shared[7] == 'o');
  guest_ok("shared_beside");
}
