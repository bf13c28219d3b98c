// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// loses
// Proves: the order of a mutex decides the signature, alike in all replicas.
#include "racey.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    pthread_mutex_lock(&m);
    sig = racey_mix(who, sig);
    pthread_mutex_unlock(&m);
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  racey_run(argc, argv, "racey_mutex");
}
