// build: -ldl -rdynamic
// deterministic
// loses
// Proves: code that dlopen brings (with system calls, atomics and locks of its
// own, and thread-local data) is prepared before it runs; dlclose and again.
#include "guest.h"
#include <dlfcn.h>
#include <pthread.h>
static void *body(void *arg) {
  unsigned long (*crc)(unsigned long, const char *, unsigned) =
      (unsigned long (*)(unsigned long, const char *, unsigned))arg;
  return (void *)crc(0, "123456789", 9);
}
int main(void) {
  for (int i = 0; i < 5; i++) {
    void *m = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    CHECK(m);
    double (*sine)(double) = (double (*)(double))dlsym(m, "sin");
    CHECK(sine && sine(0) == 0 && sine(1) > 0.84 && sine(1) < 0.85);
    CHECK(dlclose(m) == 0);
    void *s = dlopen("libstdc++.so.6", RTLD_LAZY);
    CHECK(s && dlsym(s, "__cxa_throw") && dlclose(s) == 0);
  }
  CHECK(dlopen("libno-such.so", RTLD_NOW) == NULL && dlerror());
  void *z = dlopen("libz.so.1", RTLD_NOW);
  if (z) {
    pthread_t t;
    void *r;
    CHECK(!pthread_create(&t, NULL, body, dlsym(z, "crc32")));
    CHECK(!pthread_join(t, &r) && (uintptr_t)r == 0xcbf43926);
  }
  guest_ok("dlopen");
}
