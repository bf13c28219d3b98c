// build:
// beyond
// Proves: an unsynchronised counter (a data race whose result is printed) is
// right or stopped with a report, never silently wrong.
#include "guest.h"
#include <pthread.h>
static volatile long n;
static void *body(void *arg) {
  for (int i = 0; i < 300000; i++)
    n++;
  return arg;
}
int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, NULL));
  for (int i = 0; i < 4; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("counted %ld\n", n);
  guest_ok("beyond_race_counter");
}
