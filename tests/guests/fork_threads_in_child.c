// build:
// deterministic
// loses
// ascends
// Proves: a forked child makes threads of its own, as the parent does.
#include "guest.h"
#include <pthread.h>
#include <sys/wait.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int count;
static void *add(void *arg) {
  (void)arg;
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&m);
    count++;
    pthread_mutex_unlock(&m);
  }
  return NULL;
}
static void four(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, add, NULL));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
}
int main(void) {
  four();
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    four();
    CHECK(count == 8000);
    _exit(0);
  }
  four();
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0 && count == 8000);
  guest_ok("fork_threads_in_child");
}
