// build:
// deterministic
// loses
// Proves: a process-shared mutex in shared memory orders parent and child.
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
int main(void) {
  pthread_mutexattr_t a;
  struct {
    pthread_mutex_t m;
    int n;
  } *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(s != MAP_FAILED && !pthread_mutexattr_init(&a));
  CHECK(!pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
  CHECK(!pthread_mutex_init(&s->m, &a));
  pid_t pid = fork();
  CHECK(pid >= 0);
  for (int i = 0; i < 5000; i++) {
    CHECK(!pthread_mutex_lock(&s->m));
    s->n++;
    CHECK(!pthread_mutex_unlock(&s->m));
  }
  if (pid == 0)
    _exit(0);
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0 && s->n == 10000);
  guest_ok("proc_shared_mutex");
}
