// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// Proves: the serial thread of each barrier round mixes alone; which one it is decides the signature.
#include "racey.h"
static pthread_barrier_t b;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps / 4; i++) {
    racey_pause(&seed, i);
    if (pthread_barrier_wait(&b) == PTHREAD_BARRIER_SERIAL_THREAD)
      sig = racey_mix(who, sig);
    pthread_barrier_wait(&b);
    sig = racey_read(sig);
    pthread_barrier_wait(&b);
  }
  return sig;
}
int main(int argc, char **argv) {
  CHECK(!pthread_barrier_init(&b, NULL, argc > 1 ? atoi(argv[1]) : 4));
  racey_run(argc, argv, "racey_barrier");
}
