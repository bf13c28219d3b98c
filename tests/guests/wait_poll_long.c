// build: -O1 -pthread
// loses
// Proves: who polls for long, and logs nothing meanwhile, is not taken for one that computes without end; nor are its
// followers, which poll as often once they know for how long.
// argv[1]: seconds (default 0).
#include "guest.h"
#include <pthread.h>
#include <unistd.h>

static volatile int stop;

static void *poll_it(void *arg) {
  while (!stop)
    ;
  return arg;
}

int main(int argc, char **argv) {
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, poll_it, NULL));
  sleep(argc > 1 ? atoi(argv[1]) : 0);
  stop = 1;
  CHECK(!pthread_join(t, NULL));
  guest_ok("wait_poll_long");
}
