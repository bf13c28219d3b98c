// build: -pthread -O2
// varies
// loses
// Proves: a main loop, long and with calls of select, poll or epoll_wait, that ends when a thread has set a plain word, makes as many rounds
// in every replica (mbuffer's).
#include "guest.h"
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

static int ends;
static unsigned table[64];

static void *work(void *unused) {
  (void)unused;
  struct timespec nap = {0, 700000};
  nanosleep(&nap, NULL);
  ends = 1;
  return NULL;
}

// A loop of more instructions than a look around a load goes.
#define MIX(i) x = (x ^ table[(i) % 64]) * 2654435761u + (x >> 7) + (i);
#define MIX8(i) MIX(i) MIX((i) + 1) MIX((i) + 2) MIX((i) + 3) MIX((i) + 4) MIX((i) + 5) MIX((i) + 6) MIX((i) + 7)
#define MIX64(i) MIX8(i) MIX8((i) + 8) MIX8((i) + 16) MIX8((i) + 24) MIX8((i) + 32) MIX8((i) + 40) MIX8((i) + 48) MIX8((i) + 56)

int main(void) {
  int set = epoll_create1(0);
  CHECK(set >= 0);
  unsigned x = 1, rounds = 0;
  for (int i = 0; i < 30; i++) {
    pthread_t one;
    ends = 0;
    CHECK(pthread_create(&one, NULL, work, NULL) == 0);
    while (!ends) {
      struct timeval little = {0, 100};
      struct epoll_event event;
      CHECK(select(0, NULL, NULL, NULL, &little) == 0);
      if (rounds % 3 == 1) CHECK(poll(NULL, 0, 0) == 0);
      if (rounds % 3 == 2) CHECK(epoll_wait(set, &event, 1, 0) == 0);
      MIX64(0)
      rounds++;
    }
    CHECK(pthread_join(one, NULL) == 0);
  }
  printf("%u rounds, %u\n", rounds, x);
  guest_ok("load_main_loop");
}
