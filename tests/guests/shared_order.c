// build: -pthread
// env: GERYON_SHARED_FILES=map
// varies
// Proves: which thread came to a mutex and to atomic words inside a memfd or a POSIX shared memory object
// first is the same in all replicas, and so is what is printed of it. (It was refused with ENODEV.)
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#define THREADS 3
#define ROUNDS 200
struct all {
  pthread_mutex_t m;
  uint64_t ticket, hash;
};
static struct all *a, *b;
static void *work(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t t = __atomic_fetch_add(&b->ticket, 1, __ATOMIC_SEQ_CST);
    guest_work(&seed, 3000);
    CHECK(!pthread_mutex_lock(&a->m));
    a->hash = guest_mix(a->hash, t * 8 + (uintptr_t)arg);
    b->hash = guest_mix(b->hash, a->hash);
    CHECK(!pthread_mutex_unlock(&a->m));
    if (i % 50 == 0)
      usleep(1);
  }
  return NULL;
}
static struct all *map(int fd) {
  CHECK(fd >= 0 && !ftruncate(fd, sizeof *a));
  void *p = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED && !close(fd));
  return p;
}
int main(void) {
  char name[64];
  snprintf(name, sizeof name, "/guest-order-%d", (int)getpid());
  a = map(memfd_create("order", 0));
  b = map(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600));
  CHECK(!pthread_mutex_init(&a->m, NULL));
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(b->ticket == THREADS * ROUNDS && !shm_unlink(name));
  printf("%llx %llx\n", (unsigned long long)a->hash, (unsigned long long)b->hash);
  guest_ok("shared_order");
}
