// build:
// varies
// loses
// Proves: descriptor numbers handed to racing threads agree: each thread opens
// and closes, and hashes the numbers it got.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  int held[4] = {-1, -1, -1, -1};
  for (int i = 0; i < 2000; i++) {
    int k = guest_rand(&s) & 3;
    if (held[k] >= 0)
      CHECK(close(held[k]) == 0);
    held[k] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(held[k] >= 0);
    h = guest_mix(h, held[k]);
  }
  return (void *)h;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    printf("%016llx\n", (unsigned long long)(uintptr_t)r);
  }
  guest_ok("th_open_close");
}
