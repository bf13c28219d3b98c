// build: -pthread
// not in clocks: segments are refused there
// not in code: segments are refused with variants
// not in data: segments are refused with variants
// varies
// Proves: segments of System V are attached, by several processes, which come to them in one order in all replicas;
// what is in one stays there when nobody has it attached, and it is known who has. (shmget was refused.)
#include "guest.h"
#include <errno.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#define PROCESSES 3
static int rounds = 200;
struct all {
  uint64_t ticket, hash, lock;
};
static void work(int id, int who) {
  struct all *a = shmat(id, NULL, 0);
  const struct all *seen = shmat(id, NULL, SHM_RDONLY);
  CHECK(a != (void *)-1 && seen != (void *)-1 && (void *)a != (void *)seen);
  uint64_t seed = who + 1;
  for (int i = 0; i < rounds; i++) {
    uint64_t t = __atomic_fetch_add(&a->ticket, 1, __ATOMIC_SEQ_CST);
    guest_work(&seed, 2000);
    while (__atomic_exchange_n(&a->lock, 1, __ATOMIC_ACQUIRE))
      ;
    a->hash = guest_mix(seen->hash, t * 8 + who);
    __atomic_store_n(&a->lock, 0, __ATOMIC_RELEASE);
    if (i % (rounds / 4) == 25) {
      char line[80];
      int n = snprintf(line, sizeof line, "%d %016llx\n", who, (unsigned long long)seen->hash);
      CHECK(write(1, line, n) == n);
    }
  }
  CHECK(!shmdt(seen) && shmdt(seen) == -1 && errno == EINVAL);
}
int main(int argc, char **argv) {
  if (argc > 1)
    rounds = atoi(argv[1]);
  struct shmid_ds ds;
  int id = shmget(IPC_PRIVATE, 10000, IPC_CREAT | 0600);
  CHECK(id >= 0 && !shmctl(id, IPC_STAT, &ds) && ds.shm_nattch == 0 && ds.shm_segsz == 10000);
  char *p = shmat(id, NULL, 0);
  CHECK(p != (void *)-1 && !shmctl(id, IPC_STAT, &ds) && ds.shm_nattch == 1);
  strcpy(p + 9000, "it stays");
  CHECK(!shmdt(p) && !shmctl(id, IPC_STAT, &ds) && ds.shm_nattch == 0);
  pid_t of[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    of[i] = fork();
    CHECK(of[i] >= 0);
    if (!of[i]) {
      work(id, i);
      _exit(i);
    }
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    CHECK(waitpid(of[i], &status, 0) == of[i] && WIFEXITED(status) && WEXITSTATUS(status) == i);
  }
  CHECK(!shmctl(id, IPC_STAT, &ds) && ds.shm_nattch == 0);
  p = shmat(id, NULL, 0);
  CHECK(p != (void *)-1 && !strcmp(p + 9000, "it stays"));
  struct all *a = (struct all *)p;
  printf("%llu %016llx\n", (unsigned long long)a->ticket, (unsigned long long)a->hash);
  CHECK(!shmctl(id, IPC_RMID, NULL) && !shmdt(p) && shmget(id, 0, 0) == -1);
  CHECK(shmat(id, NULL, 0) == (void *)-1 && (errno == EINVAL || errno == EIDRM));
  guest_ok("kin_segment");
}
