// build:
// deterministic
// loses
// Proves: C11 threads: thrd, mtx (all kinds), cnd, tss, call_once.
#include "guest.h"
#include <threads.h>
static mtx_t m;
static cnd_t c;
static once_flag once = ONCE_FLAG_INIT;
static tss_t key;
static int n, inits;
static void init(void) { inits++; }
static int body(void *arg) {
  call_once(&once, init);
  CHECK(tss_set(key, arg) == thrd_success);
  for (int i = 0; i < 500; i++) {
    CHECK(mtx_lock(&m) == thrd_success);
    n++;
    cnd_signal(&c);
    CHECK(mtx_unlock(&m) == thrd_success);
    thrd_yield();
  }
  return tss_get(key) == arg ? 3 : 4;
}
int main(void) {
  CHECK(mtx_init(&m, mtx_timed | mtx_recursive) == thrd_success);
  CHECK(cnd_init(&c) == thrd_success && tss_create(&key, NULL) == thrd_success);
  thrd_t t[4];
  for (int i = 0; i < 4; i++)
    CHECK(thrd_create(&t[i], body, &t[i]) == thrd_success);
  mtx_lock(&m);
  while (n < 2000)
    cnd_wait(&c, &m);
  mtx_unlock(&m);
  for (int i = 0; i < 4; i++) {
    int r;
    CHECK(thrd_join(t[i], &r) == thrd_success && r == 3);
  }
  CHECK(inits == 1);
  guest_ok("th_c11");
}
