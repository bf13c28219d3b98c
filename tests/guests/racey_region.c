// build: -pthread -O2
// varies
// loses
// Proves: what stands in sequential regions (geryon.h) is done in the same order in all replicas, by one thread at a time. Outside
// Geryon they are nothing, and the words race.
#include "../../include/geryon.h"
#include "racey.h"

static geryon_domain cells = GERYON_DOMAIN;

// A region in a region of the same domain.
__attribute__((noinline)) static uint64_t mix(int who, uint64_t sig) {
  geryon_begin(&cells);
  sig = racey_mix(who, sig);
  geryon_end(&cells);
  return sig;
}

static uint64_t racey_body(int who) {
  uint64_t sig = who + 1, seed = who + 7;
  for (int i = 0; i < racey_steps; i++) {
    geryon_begin(&cells);
    sig = racey_mix(who, sig);
    sig = mix(who, sig);
    geryon_end(&cells);
    racey_pause(&seed, i);
  }
  return sig;
}

int main(int argc, char **argv) { racey_run(argc, argv, "racey_region"); }
