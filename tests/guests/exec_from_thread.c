// build:
// deterministic
// loses
// Proves: exec from a thread that is not the main one ends all others and
// keeps the pid.
#include "guest.h"
#include <pthread.h>
static char **args;
static void *spin(void *arg) {
  for (;;)
    pause();
  return arg;
}
static void *replace(void *arg) {
  char pid[16];
  (void)arg;
  snprintf(pid, sizeof pid, "%d", getpid());
  execl("/proc/self/exe", args[0], pid, (char *)NULL);
  CHECK(!"exec failed");
  return NULL;
}
int main(int argc, char **argv) {
  args = argv;
  if (argc > 1) {
    CHECK(atoi(argv[1]) == getpid());
    guest_ok("exec_from_thread");
    return 0;
  }
  pthread_t t[3];
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_create(&t[i], NULL, i == 2 ? replace : spin, NULL));
  for (;;)
    pause();
}
