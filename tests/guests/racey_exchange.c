// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// loses
// Proves: a lock of a program's own, which is tried by an exchange until that changes something, with the processor given
// away in between, decides the signature.
#include <sched.h>
#include "racey.h"
static int taken;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    while (__atomic_exchange_n(&taken, 1, __ATOMIC_SEQ_CST)) sched_yield();
    sig = racey_mix(who, sig);
    __atomic_exchange_n(&taken, 0, __ATOMIC_SEQ_CST);
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) { racey_run(argc, argv, "racey_exchange"); }
