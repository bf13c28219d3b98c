// The frame of the racey guests, in the manner of Xu, Bodik and Hill's racey:
// threads mix a shared array, each step under the primitive that the guest is
// about, so that the signature depends on the order in which they came.
// There is no data race; only the order is left to chance.
// argv[1]: threads (default 4), argv[2]: steps of each thread.
#ifndef RACEY_H
#define RACEY_H
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#define RACEY_CELLS 64
#define RACEY_MOST_THREADS 64
#define RACEY_STEPS 5000

static uint64_t racey_cell[RACEY_CELLS];
static int racey_threads = 4, racey_steps = RACEY_STEPS;
static pthread_barrier_t racey_start;

// Mixes two cells; the caller holds whatever protects the array.
static inline uint64_t racey_mix(int who, uint64_t private_sig) {
  uint64_t a = racey_cell[(who * 7 + private_sig) % RACEY_CELLS];
  uint64_t *b = &racey_cell[a % RACEY_CELLS];
  *b = guest_mix(*b ^ a, private_sig + who);
  return guest_mix(private_sig, *b);
}

// Reads the whole array; the caller may share it with other readers.
static uint64_t racey_read(uint64_t private_sig) {
  return guest_hash(private_sig, racey_cell, sizeof racey_cell);
}

// One thread's part; what it returns goes into the signature.
static uint64_t racey_body(int who);

// Uneven pauses between steps, so that the order is open.
static inline void racey_pause(uint64_t *seed, int step) {
  guest_work(seed, 200);
  if (step % 64 == 63)
    sched_yield();
}

static void *racey_thread(void *arg) {
  pthread_barrier_wait(&racey_start); // nobody is done before all began
  return (void *)racey_body((int)(intptr_t)arg);
}

static void racey_run(int argc, char **argv, const char *name) {
  if (argc > 1)
    racey_threads = atoi(argv[1]);
  if (argc > 2)
    racey_steps = atoi(argv[2]);
  CHECK(racey_threads > 0 && racey_threads <= RACEY_MOST_THREADS);
  CHECK(!pthread_barrier_init(&racey_start, NULL, racey_threads));
  pthread_t t[RACEY_MOST_THREADS];
  for (int i = 0; i < RACEY_CELLS; i++)
    racey_cell[i] = i * 0x9e3779b97f4a7c15ull;
  for (int i = 0; i < racey_threads; i++)
    CHECK(!pthread_create(&t[i], NULL, racey_thread, (void *)(intptr_t)i));
  uint64_t sig = 0;
  for (int i = 0; i < racey_threads; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    sig = guest_mix(sig, (uintptr_t)r);
  }
  printf("signature %016llx\n", (unsigned long long)racey_read(sig));
  guest_ok(name);
}
#endif
