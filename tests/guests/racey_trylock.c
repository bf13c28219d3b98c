// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// loses
// Proves: trylock outcomes: a thread that fails does something else instead.
#include "racey.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    if (pthread_mutex_trylock(&m) == 0) {
      sig = racey_mix(who, sig);
      guest_work(&seed, 200);
      pthread_mutex_unlock(&m);
    } else {
      sig = guest_mix(sig, i);
    }
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  racey_run(argc, argv, "racey_trylock");
}
