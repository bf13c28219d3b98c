// build: -pthread -lrt
// Proves: mutex, condition, barrier and atomics in POSIX shared memory order the processes that map it,
// by name and at other addresses too; what they saw of each other is the same in every replica. (The
// processes of a follower came to the memory in an order of their own: divergence.)
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#define CHILDREN 3
#define ROUNDS 40
struct all {
  pthread_mutex_t m;
  pthread_cond_t c;
  pthread_barrier_t b;
  unsigned turn, done;
  unsigned long ticket, raced;
  uint64_t hash;
  unsigned order[CHILDREN * ROUNDS];
};
static struct all *open_it(const char *name) {
  int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
  CHECK(fd >= 0 && !ftruncate(fd, sizeof(struct all)));
  struct all *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(a != MAP_FAILED && !close(fd));
  return a;
}
static void work(struct all *a, unsigned me) {
  pthread_barrier_wait(&a->b);
  uint64_t seed = me + 1;
  for (unsigned i = 0; i < ROUNDS; i++) {
    unsigned long t = __atomic_fetch_add(&a->ticket, 1, __ATOMIC_SEQ_CST);
    a->raced = a->raced * 3 + t; // a race on purpose
    for (unsigned n = guest_rand(&seed) % 2000; n; n--)
      __asm__ volatile("");
    CHECK(!pthread_mutex_lock(&a->m));
    a->hash = guest_mix(a->hash, t * 8 + me + a->raced);
    a->order[a->done++] = me;
    CHECK(!pthread_mutex_unlock(&a->m));
  }
  // In turn, by a condition.
  CHECK(!pthread_mutex_lock(&a->m));
  while (a->turn != me)
    CHECK(!pthread_cond_wait(&a->c, &a->m));
  a->turn++;
  CHECK(!pthread_cond_broadcast(&a->c));
  CHECK(!pthread_mutex_unlock(&a->m));
  char line[80];
  int n = snprintf(line, sizeof line, "%u %lx\n", me, (unsigned long)a->hash);
  CHECK(write(1, line, n) == n);
}
int main(void) {
  char name[64];
  snprintf(name, sizeof name, "/guest-posix-%d", (int)getpid());
  struct all *a = open_it(name);
  pthread_mutexattr_t ma;
  pthread_condattr_t ca;
  pthread_barrierattr_t ba;
  CHECK(!pthread_mutexattr_init(&ma) && !pthread_condattr_init(&ca) && !pthread_barrierattr_init(&ba));
  CHECK(!pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED));
  CHECK(!pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED));
  CHECK(!pthread_barrierattr_setpshared(&ba, PTHREAD_PROCESS_SHARED));
  CHECK(!pthread_mutex_init(&a->m, &ma) && !pthread_cond_init(&a->c, &ca));
  CHECK(!pthread_barrier_init(&a->b, &ba, CHILDREN));
  pid_t pids[CHILDREN];
  for (unsigned i = 0; i < CHILDREN; i++) {
    pids[i] = fork();
    CHECK(pids[i] >= 0);
    if (!pids[i]) {
      if (i == 1) {
        void *gap = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(gap != MAP_FAILED);
        a = open_it(name);
      }
      work(a, i);
      _exit(0);
    }
  }
  for (unsigned i = 0; i < CHILDREN; i++) {
    int st;
    CHECK(waitpid(pids[i], &st, 0) == pids[i] && st == 0);
  }
  CHECK(a->done == CHILDREN * ROUNDS && a->turn == CHILDREN && a->ticket == CHILDREN * ROUNDS);
  printf("%lx %lx\n", (unsigned long)a->hash, a->raced);
  CHECK(!shm_unlink(name));
  guest_ok("shm_posix");
}
