// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// loses
// Proves: raw compare-and-swap and fetch_add decide the signature.
#include "racey.h"
static uint64_t shared[RACEY_CELLS];
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    uint64_t *p = &shared[sig % RACEY_CELLS];
    uint64_t old = __sync_fetch_and_add(&shared[0], who);
    for (;;) {
      uint64_t seen = __sync_val_compare_and_swap(p, old, guest_mix(old, who));
      sig = guest_mix(sig, seen);
      if (seen == old)
        break;
      old = seen;
    }
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  racey_run(argc, argv, "racey_atomic");
}
