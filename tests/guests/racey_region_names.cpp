// build: -pthread -O2
// varies
// loses
// Proves: domains by the address of what they are for, other names of theirs, and the default one (geryon.h, in C++).
#include "../../include/geryon.h"
#include "racey.h"

enum { PARTS = 4 };

static uint64_t part[PARTS];
static char alias[PARTS];

static uint64_t racey_body(int who) {
  uint64_t sig = who + 1, seed = who + 7;
  for (int i = 0; i < racey_steps / 4; i++) {
    unsigned of = sig % PARTS;
    // By the one name, or by the other.
    const void *name = sig & 64 ? (const void *)&part[of] : &alias[of];
    geryon_begin_at(name);
    part[of] = sig = guest_mix(part[of], sig);
    geryon_end_at(name);
    geryon_begin(GERYON_DEFAULT_DOMAIN);
    sig = racey_mix(who, sig);
    geryon_end(GERYON_DEFAULT_DOMAIN);
    racey_pause(&seed, i);
  }
  return sig;
}

int main(int argc, char **argv) {
  for (int i = 0; i < PARTS; i++)
    geryon_alias(&part[i], &alias[i]);
  if (geryon_is_here()) {
    for (int i = 0; i < PARTS; i++)
      CHECK(geryon_domain_at(&part[i]) == geryon_domain_at(&alias[i]));
    CHECK(geryon_domain_at(&part[0]) != geryon_domain_at(&part[1]));
  }
  racey_run(argc, argv, "racey_region_names");
}
