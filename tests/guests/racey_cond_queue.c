// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// descends
// loses
// Proves: a bounded queue on two condition variables: every thread puts and takes in turn; who takes what decides the signature.
#include "racey.h"
#define ROOM 4
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static uint64_t queue[ROOM];
static unsigned put, taken;
// Even threads put, odd ones take; with an odd number the last does both.
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  int both = who == racey_threads - 1 && who % 2 == 0;
  for (int i = 0; i < racey_steps; i++) {
    if (who % 2 == 0) {
      pthread_mutex_lock(&m);
      while (put - taken == ROOM)
        pthread_cond_wait(&not_full, &m);
      queue[put++ % ROOM] = sig;
      sig = racey_mix(who, sig);
      pthread_cond_signal(&not_empty);
      pthread_mutex_unlock(&m);
    }
    if (who % 2 == 1 || both) {
      pthread_mutex_lock(&m);
      while (put == taken)
        pthread_cond_wait(&not_empty, &m);
      sig = guest_mix(sig, queue[taken++ % ROOM]);
      sig = racey_mix(who, sig);
      pthread_cond_signal(&not_full);
      pthread_mutex_unlock(&m);
    }
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  racey_run(argc, argv, "racey_cond_queue");
}
