// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// descends
// loses
// Proves: a semaphore as a lock, tried first: outcome and order both enter the signature.
#include "racey.h"
#include <semaphore.h>
static sem_t s;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    if (i % 2 == 0 || sem_trywait(&s) != 0) {
      while (sem_wait(&s) != 0)
        CHECK(errno == EINTR);
      sig++;
    }
    sig = racey_mix(who, sig);
    CHECK(!sem_post(&s));
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  CHECK(!sem_init(&s, 0, 1));
  racey_run(argc, argv, "racey_sem");
}
