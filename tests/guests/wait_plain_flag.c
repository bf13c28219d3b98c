// build: -O2
// loses
// not in clocks: order decided by plain loads is not repeated there
// delayed
// Proves: two threads hand data to each other by plain flags that they poll without pause. Who waits reads what the
// other one has stored before the flag, counts its polls, and the counts are the same in all replicas.
#include "guest.h"
#include <pthread.h>

enum { ROUNDS = 300 };
static volatile long turn;
static uint64_t data[8], polls[2];

static uint64_t await(long now) {
  uint64_t n = 0;
  while (turn != now)
    n++;
  return n;
}

static void *other(void *arg) {
  for (long i = 0; i < ROUNDS; i++) {
    polls[1] += await(2 * i + 1);
    for (int k = 0; k < 8; k++)
      data[k] = guest_mix(data[k], i);
    turn = 2 * i + 2;
  }
  return arg;
}

int main(void) {
  uint64_t expected[8] = {0};
  pthread_t t;
  CHECK(!pthread_create(&t, NULL, other, NULL));
  for (long i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < 8; k++) {
      data[k] = guest_mix(data[k], k);
      expected[k] = guest_mix(guest_mix(expected[k], k), i);
    }
    turn = 2 * i + 1;
    polls[0] += await(2 * i + 2);
    for (int k = 0; k < 8; k++)
      CHECK(data[k] == expected[k]);
  }
  CHECK(!pthread_join(t, NULL));
  printf("polls %llu %llu\n", (unsigned long long)polls[0], (unsigned long long)polls[1]);
  guest_ok("wait_plain_flag");
}
