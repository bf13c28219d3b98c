// build:
// loses
// Proves: unsynchronised write calls of four threads to one pipe: each line
// leaves once and whole; the order is the leader's.
#include "guest.h"
#include <pthread.h>
static void *body(void *arg) {
  for (int i = 0; i < 300; i++) {
    char line[64];
    int n = snprintf(line, sizeof line, "%lu:%d\n", (unsigned long)(uintptr_t)arg, i);
    CHECK(write(1, line, n) == n);
  }
  return NULL;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
  guest_ok("th_write_interleave");
}
