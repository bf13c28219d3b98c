// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// loses
// Proves: a spin lock (no room for a clock in it) decides the signature.
#include "racey.h"
static pthread_spinlock_t l;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    pthread_spin_lock(&l);
    sig = racey_mix(who, sig);
    pthread_spin_unlock(&l);
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  CHECK(!pthread_spin_init(&l, 0));
  racey_run(argc, argv, "racey_spin");
}
