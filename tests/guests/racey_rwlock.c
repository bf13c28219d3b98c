// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// descends
// loses
// Proves: writers mix under a rwlock, readers hash what they see.
#include "racey.h"
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    if ((i + who) % 3 == 0) {
      CHECK(!pthread_rwlock_wrlock(&l));
      sig = racey_mix(who, sig);
    } else {
      CHECK(!pthread_rwlock_rdlock(&l));
      sig = racey_read(sig);
    }
    CHECK(!pthread_rwlock_unlock(&l));
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  racey_run(argc, argv, "racey_rwlock");
}
