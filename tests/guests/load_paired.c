// build: -pthread -O2
// varies
// loses
// Proves: what is made once under a lock that is taken by a table of functions, asked for before and again then, is looked at in order
// (the records of Tcl's threads).
#include "guest.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 3000, WIDTH = 64, TREES = 40 };

struct node {
  uint64_t made;
  struct node *child[WIDTH];
};

// As a library finds it in the program that has loaded it.
struct functions {
  void *(*make)(size_t, size_t);
  int (*lock)(pthread_mutex_t *);
  int (*unlock)(pthread_mutex_t *);
};

static const struct functions of_program = {calloc, pthread_mutex_lock, pthread_mutex_unlock};
const struct functions *volatile given = &of_program;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t made;
static struct node roots[TREES];
static pthread_barrier_t meet;

__attribute__((noipa)) static struct node *child(struct node **at) {
  struct node *n = __atomic_load_n(at, __ATOMIC_RELAXED);
  if (n == NULL) {
    given->lock(&lock);
    if (__atomic_load_n(at, __ATOMIC_RELAXED) == NULL) {
      n = given->make(1, sizeof *n);
      n->made = ++made;
      __atomic_store_n(at, n, __ATOMIC_RELEASE);
    }
    given->unlock(&lock);
    n = __atomic_load_n(at, __ATOMIC_RELAXED);
  }
  return n;
}

static void *walk(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1, sum = 0;
  for (int k = 0; k < TREES; k++) {
    pthread_barrier_wait(&meet);
    for (int i = 0; i < ROUNDS / TREES; i++) {
      uint64_t key = guest_rand(&seed);
      struct node *n = child(&roots[k].child[key % 8]);
      n = child(&n->child[key / 8 % WIDTH]);
      sum = guest_mix(sum, n->made);
    }
  }
  return (void *)sum;
}

int main(void) {
  pthread_t t[THREADS];
  CHECK(!pthread_barrier_init(&meet, NULL, THREADS));
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, walk, (void *)i));
  uint64_t sum = 0;
  for (int i = 0; i < THREADS; i++) {
    void *one;
    CHECK(!pthread_join(t[i], &one));
    sum ^= (uintptr_t)one << i;
  }
  printf("%016llx\n", (unsigned long long)sum);
  guest_ok("load_paired");
}
