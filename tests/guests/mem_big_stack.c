// build:
// deterministic
// loses
// Proves: the main stack grows by faults, and a thread with a 64 MB stack
// uses it to its depth.
#include "guest.h"
#include <pthread.h>
static int __attribute__((noinline)) deep(int n) {
  volatile char page[4096];
  page[0] = n;
  page[4095] = n;
  return n == 0 ? page[0] : deep(n - 1) + (page[4095] == (char)n);
}
static void *in_thread(void *arg) {
  (void)arg;
  return (void *)(intptr_t)deep(12000);
}
int main(void) {
  CHECK(deep(1500) == 1500);
  pthread_attr_t a;
  pthread_t t;
  void *r;
  CHECK(!pthread_attr_init(&a) && !pthread_attr_setstacksize(&a, 64 << 20));
  CHECK(!pthread_create(&t, &a, in_thread, NULL) && !pthread_join(t, &r));
  CHECK((intptr_t)r == 12000);
  guest_ok("mem_big_stack");
}
