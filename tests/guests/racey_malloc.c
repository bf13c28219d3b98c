// build:
// not in data: what it prints are addresses, or is made of them
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// loses
// Proves: the addresses malloc hands out are the signature.
#include "racey.h"
#include <malloc.h>
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  void *held[8] = {0};
  for (int i = 0; i < racey_steps; i++) {
    int k = guest_rand(&seed) & 7;
    free(held[k]);
    held[k] = malloc(1024 + guest_rand(&seed) % 3000);
    sig = guest_mix(sig, (uintptr_t)held[k]);
    racey_pause(&seed, i);
  }
  for (int i = 0; i < 8; i++)
    free(held[i]);
  return sig;
}
int main(int argc, char **argv) {
  CHECK(mallopt(M_ARENA_MAX, 1)); // all threads meet in one arena
  racey_run(argc, argv, "racey_malloc");
}
