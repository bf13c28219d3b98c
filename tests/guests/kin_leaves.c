// build: -pthread
// not in clocks: in which order processes come to memory that they share is repeated in serial order only
// varies
// Proves: processes that share memory come and go all the time, and whoever is copied meanwhile knows in which order those
// had it that have ended since. (A copy that lacked one which had ended in the leader, and not yet in its
// source, waited for ever for what that one was still to do.)
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#define PROCESSES 6
static int children = 60;
struct all {
  pthread_mutex_t m;
  uint64_t ticket, hash;
};
static void work(struct all *a, int who) {
  uint64_t seed = who + 1;
  int rounds = 20 + who * 7 % 50;
  for (int i = 0; i < rounds; i++) {
    uint64_t t = __atomic_fetch_add(&a->ticket, 1, __ATOMIC_SEQ_CST);
    guest_work(&seed, 2000);
    CHECK(!pthread_mutex_lock(&a->m));
    a->hash = guest_mix(a->hash, t * 8 + who);
    CHECK(!pthread_mutex_unlock(&a->m));
    if (i % 5 == 0)
      usleep(1);
  }
  char line[80];
  int n = snprintf(line, sizeof line, "%d %016llx\n", who, (unsigned long long)a->hash);
  CHECK(write(1, line, n) == n);
  a->hash = guest_mix(a->hash, who);
}
int main(int argc, char **argv) {
  if (argc > 1)
    children = atoi(argv[1]);
  struct all *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(a != MAP_FAILED);
  pthread_mutexattr_t ma;
  CHECK(!pthread_mutexattr_init(&ma) && !pthread_mutexattr_setpshared(&ma, PTHREAD_PROCESS_SHARED));
  CHECK(!pthread_mutex_init(&a->m, &ma));
  int alive = 0;
  for (int made = 0; made < children || alive;) {
    if (made < children && alive < PROCESSES) {
      pid_t p = fork();
      CHECK(p >= 0);
      if (!p) {
        work(a, made);
        _exit(7);
      }
      made++;
      alive++;
      continue;
    }
    int status;
    CHECK(waitpid(-1, &status, 0) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    alive--;
  }
  printf("%llu %016llx\n", (unsigned long long)a->ticket, (unsigned long long)a->hash);
  guest_ok("kin_leaves");
}
