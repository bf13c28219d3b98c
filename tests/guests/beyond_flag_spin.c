// build:
// beyond
// Proves: a program whose plain loads decide (a spin on a flag that another
// thread stores) is right or stopped with a report, never silently wrong.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
static volatile int turn;
static uint64_t spun[2];
static void *body(void *arg) {
  int me = (int)(intptr_t)arg;
  for (int i = 0; i < 2000; i++) {
    while (turn != me) {
      spun[me]++;
      sched_yield();
    }
    turn = !me;
  }
  return NULL;
}
int main(void) {
  pthread_t t[2];
  for (intptr_t i = 0; i < 2; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 2; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("spun %llu %llu\n", (unsigned long long)spun[0], (unsigned long long)spun[1]);
  guest_ok("beyond_flag_spin");
}
