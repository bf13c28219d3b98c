// build:
// deterministic
// loses
// Proves: threads in sleeps that the kernel takes up again by restart_syscall
// (a condition's time, poll, nanosleep) sleep to their ends. Tests make a fault
// in one of them meanwhile.
#include "guest.h"
#include <poll.h>
#include <pthread.h>
#include <time.h>
#define SLEEPS 5
#define SLEEP_MS 40

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void *waits(void *arg) {
  CHECK(!pthread_mutex_lock(&lock));
  for (int i = 0; i < SLEEPS; i++) {
    struct timespec t;
    CHECK(!clock_gettime(CLOCK_REALTIME, &t));
    t.tv_nsec += SLEEP_MS * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    int r;
    while ((r = pthread_cond_timedwait(&never, &lock, &t)) == 0)
      ;
    CHECK(r == ETIMEDOUT);
  }
  CHECK(!pthread_mutex_unlock(&lock));
  return arg;
}

static void *polls(void *arg) {
  for (int i = 0; i < SLEEPS; i++)
    CHECK(poll(NULL, 0, SLEEP_MS) == 0);
  return arg;
}

static void *naps(void *arg) {
  struct timespec t = {0, SLEEP_MS * 1000000};
  for (int i = 0; i < SLEEPS; i++)
    CHECK(nanosleep(&t, NULL) == 0);
  return arg;
}

int main(void) {
  pthread_t t[3];
  CHECK(!pthread_create(&t[0], NULL, waits, NULL));
  CHECK(!pthread_create(&t[1], NULL, polls, NULL));
  CHECK(!pthread_create(&t[2], NULL, naps, NULL));
  for (int i = 0; i < 3; i++)
    CHECK(!pthread_join(t[i], NULL));
  guest_ok("sleeps_of_all_kinds");
}
