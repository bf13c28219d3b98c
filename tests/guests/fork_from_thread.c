// build:
// not in serial: its threads spin, and one that spins keeps the turn
// deterministic
// loses
// Proves: fork from a thread while others lock and allocate: the child has one
// thread, its allocator works.
#include "guest.h"
#include <pthread.h>
#include <sys/wait.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int stop;
static void *churn(void *arg) {
  uint64_t s = (uintptr_t)arg;
  for (;;) {
    pthread_mutex_lock(&m);
    int end = stop;
    pthread_mutex_unlock(&m);
    if (end)
      return NULL;
    free(malloc(guest_rand(&s) % 3000));
  }
}
static void *forker(void *arg) {
  (void)arg;
  for (int i = 0; i < 20; i++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      char *p = malloc(5000);
      CHECK(p);
      memset(p, i, 5000);
      free(p);
      _exit(i);
    }
    int st;
    CHECK(waitpid(pid, &st, 0) == pid && WEXITSTATUS(st) == i);
  }
  return NULL;
}
int main(void) {
  pthread_t t[3];
  CHECK(!pthread_create(&t[0], NULL, churn, (void *)1));
  CHECK(!pthread_create(&t[1], NULL, churn, (void *)2));
  CHECK(!pthread_create(&t[2], NULL, forker, NULL));
  CHECK(!pthread_join(t[2], NULL));
  pthread_mutex_lock(&m);
  stop = 1;
  pthread_mutex_unlock(&m);
  CHECK(!pthread_join(t[0], NULL) && !pthread_join(t[1], NULL));
  guest_ok("fork_from_thread");
}
