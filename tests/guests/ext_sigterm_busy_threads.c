// build:
// not in serial: its threads spin, and one that spins keeps the turn
// send: SIGTERM
// loses
// Proves: SIGTERM from outside, during locking in four threads, is handled at
// the same logical point in all replicas: the handler's count ends the loops.
#include "guest.h"
#include <pthread.h>
#include <signal.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int pipe_fd[2], stop;
static uint64_t shared;
static void on(int s) {
  (void)s;
  CHECK(write(pipe_fd[1], "s", 1) == 1);
}
static void *work(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1;
  for (;;) {
    pthread_mutex_lock(&m);
    int end = stop;
    shared = guest_mix(shared, (uintptr_t)arg);
    pthread_mutex_unlock(&m);
    if (end)
      return NULL;
    guest_work(&seed, 200);
  }
}
int main(void) {
  CHECK(pipe(pipe_fd) == 0 && signal(SIGTERM, on) != SIG_ERR);
  pthread_t t[4];
  for (intptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  puts("READY");
  fflush(stdout);
  char c;
  while (read(pipe_fd[0], &c, 1) != 1)
    CHECK(errno == EINTR);
  pthread_mutex_lock(&m);
  stop = 1;
  pthread_mutex_unlock(&m);
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("shared %016llx\n", (unsigned long long)shared);
  guest_ok("ext_sigterm_busy_threads");
}
