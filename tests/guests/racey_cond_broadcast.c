// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// descends
// loses
// Proves: a hand-made gate on one condition variable with broadcast: the order of waking decides the signature.
#include "racey.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int inside;
// At most two threads inside; leaving wakes all that wait.
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    pthread_mutex_lock(&m);
    while (inside == 2)
      pthread_cond_wait(&c, &m);
    inside++;
    sig = racey_mix(who, sig);
    pthread_mutex_unlock(&m);
    racey_pause(&seed, i);
    pthread_mutex_lock(&m);
    inside--;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
  }
  return sig;
}
int main(int argc, char **argv) {
  racey_run(argc, argv, "racey_cond_broadcast");
}
