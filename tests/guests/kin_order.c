// build: -pthread
// not in clocks: in which order processes come to memory that they share is repeated in serial order only
// varies
// Proves: in which order several processes come to memory that they share is the same in all replicas, whatever they
// use: atomic instructions, a mutex and a condition of pthread's, plain loads and stores, a raw futex. What
// depends on it is printed by each of them. (It was each replica's own affair: what they printed differed.)
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#define PROCESSES 4
static int rounds = 300;
struct all {
  pthread_mutex_t m;
  pthread_cond_t c;
  uint64_t ticket, hash, plain, turns;
  int ready;
};
static void work(struct all *a, int who) {
  uint64_t seed = who + 1;
  for (int i = 0; i < rounds; i++) {
    uint64_t t = __atomic_fetch_add(&a->ticket, 1, __ATOMIC_SEQ_CST);
    guest_work(&seed, 2000);
    a->plain = guest_mix(a->plain, t * 8 + who);
    CHECK(!pthread_mutex_lock(&a->m));
    a->hash = guest_mix(a->hash, a->plain + who);
    CHECK(!pthread_mutex_unlock(&a->m));
    if (i % 50 == 0)
      usleep(1);
    if (i % (rounds / 3) == rounds / 3 - 1) {
      char line[80];
      int n = snprintf(line, sizeof line, "%d %016llx\n", who, (unsigned long long)a->hash);
      CHECK(write(1, line, n) == n);
    }
  }
}
int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  struct all *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(a != MAP_FAILED);
  pthread_mutexattr_t ma;
  pthread_condattr_t ca;
  CHECK(!pthread_mutexattr_init(&ma) && !pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED));
  CHECK(!pthread_condattr_init(&ca) && !pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED));
  CHECK(!pthread_mutex_init(&a->m, &ma) && !pthread_cond_init(&a->c, &ca));
  pid_t of[PROCESSES];
  for (int p = 0; p < PROCESSES; p++) {
    of[p] = fork();
    CHECK(of[p] >= 0);
    if (!of[p]) {
      CHECK(!pthread_mutex_lock(&a->m));
      while (!a->ready)
        CHECK(!pthread_cond_wait(&a->c, &a->m));
      CHECK(!pthread_mutex_unlock(&a->m));
      work(a, p);
      _exit(p);
    }
  }
  CHECK(!pthread_mutex_lock(&a->m));
  a->ready = 1;
  CHECK(!pthread_cond_broadcast(&a->c));
  CHECK(!pthread_mutex_unlock(&a->m));
  for (int p = 0; p < PROCESSES; p++) {
    int status;
    CHECK(waitpid(of[p], &status, 0) == of[p] && WIFEXITED(status) && WEXITSTATUS(status) == p);
  }
  printf("%llu %016llx\n", (unsigned long long)a->ticket, (unsigned long long)a->hash);
  guest_ok("kin_order");
}
