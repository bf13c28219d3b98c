// build:
// env: GERYON_SHARED_FILES=map
// deterministic
// Proves: a named semaphore, whose file is mapped shared and writable, works.
#include "guest.h"
#include <fcntl.h>
#include <semaphore.h>
int main(void) {
  char name[64];
  snprintf(name, sizeof name, "/geryon-guest-%d", getpid());
  sem_t *n = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
  CHECK(n != SEM_FAILED && !sem_unlink(name));
  CHECK(!sem_wait(n) && sem_trywait(n) == -1 && errno == EAGAIN && !sem_close(n));
  guest_ok("sem_named");
}
