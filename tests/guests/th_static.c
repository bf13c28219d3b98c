// build: -static
// loses
// not in code: it is linked for a fixed address, which is said
// not in data: it is linked for a fixed address, which is said
// Proves: a static program with threads: locks, condition, malloc, stdio of the
// copy of libc inside it are ordered as those of the shared one.
#include "racey.h"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    void *p = malloc(100 + guest_rand(&seed) % 2000);
    pthread_mutex_lock(&m);
    sig = guest_mix(racey_mix(who, sig), (uintptr_t)p);
    pthread_mutex_unlock(&m);
    free(p);
    if (i % 200 == 0)
      printf("%d at %d\n", who, i);
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) { racey_run(argc, argv, "th_static"); }
