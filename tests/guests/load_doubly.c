// build: -pthread -O2
// varies
// loses
// Proves: a word of an object that a function asks for before it takes the lock, and makes if it is not there when it asks again, is
// looked at in order (jemalloc's trees).
#include "guest.h"
#include <pthread.h>
#include <sched.h>

enum { THREADS = 3, ROUNDS = 3000, WIDTH = 64, TREES = 40 };

struct node {
  uint64_t made;
  struct node *child[WIDTH];
};

static struct tree {
  pthread_mutex_t lock;
  uint64_t made;
  struct node root;
} trees[TREES];

static pthread_barrier_t meet;

__attribute__((noipa)) static struct node *child(struct tree *t, struct node **at) {
  struct node *n = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  if (n == NULL) {
    pthread_mutex_lock(&t->lock);
    n = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (n == NULL) {
      n = calloc(1, sizeof *n);
      n->made = ++t->made;
      __atomic_store_n(at, n, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&t->lock);
  }
  return n;
}

static void *walk(void *arg) {
  uint64_t seed = (uintptr_t)arg + 1, sum = 0;
  for (int k = 0; k < TREES; k++) {
    pthread_barrier_wait(&meet);
    for (int i = 0; i < ROUNDS / TREES; i++) {
      uint64_t key = guest_rand(&seed);
      struct node *n = child(&trees[k], &trees[k].root.child[key % 8]);
      n = child(&trees[k], &n->child[key / 8 % WIDTH]);
      sum = guest_mix(sum, n->made);
    }
  }
  return (void *)sum;
}

int main(void) {
  pthread_t t[THREADS];
  CHECK(!pthread_barrier_init(&meet, NULL, THREADS));
  for (int i = 0; i < TREES; i++)
    CHECK(!pthread_mutex_init(&trees[i].lock, NULL));
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, walk, (void *)i));
  uint64_t sum = 0;
  for (int i = 0; i < THREADS; i++) {
    void *one;
    CHECK(!pthread_join(t[i], &one));
    sum ^= (uintptr_t)one << i;
  }
  printf("%016llx\n", (unsigned long long)sum);
  guest_ok("load_doubly");
}
