// build:
// deterministic
// Proves: main leaves by pthread_exit; the last thread ends the program, exit
// handlers run, status 0.
#include "guest.h"
#include <pthread.h>
static pthread_t main_thread;
static void last(void) { guest_ok("th_pthread_exit_main"); }
static void *body(void *arg) {
  void *r;
  CHECK(!pthread_join(main_thread, &r) && r == (void *)77);
  puts("main is gone");
  return arg;
}
int main(void) {
  main_thread = pthread_self();
  CHECK(!atexit(last));
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, body, NULL));
  pthread_exit((void *)77);
}
