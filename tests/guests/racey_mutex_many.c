// build:
// args: 2 8000
// args: 4 4000
// args: 8 2000
// varies
// loses
// Proves: sixteen mutexes taken in pairs: partial orders that must all agree.
#include "racey.h"
#define LOCKS 16
#define CELLS_PER_LOCK (RACEY_CELLS / LOCKS)
static pthread_mutex_t m[LOCKS];
static uint64_t racey_body(int who) {
  uint64_t sig = who, seed = who + 1;
  for (int i = 0; i < racey_steps; i++) {
    unsigned a = sig % LOCKS, b = (sig >> 8) % LOCKS;
    if (a > b) {
      unsigned c = a;
      a = b;
      b = c;
    }
    pthread_mutex_lock(&m[a]);
    if (b != a)
      pthread_mutex_lock(&m[b]);
    uint64_t *x = &racey_cell[a * CELLS_PER_LOCK + (sig >> 16) % CELLS_PER_LOCK];
    uint64_t *y = &racey_cell[b * CELLS_PER_LOCK + (sig >> 20) % CELLS_PER_LOCK];
    *y = guest_mix(*x ^ *y, who);
    sig = guest_mix(sig, *y);
    if (b != a)
      pthread_mutex_unlock(&m[b]);
    pthread_mutex_unlock(&m[a]);
    racey_pause(&seed, i);
  }
  return sig;
}
int main(int argc, char **argv) {
  for (int i = 0; i < LOCKS; i++)
    CHECK(!pthread_mutex_init(&m[i], NULL));
  racey_run(argc, argv, "racey_mutex_many");
}
