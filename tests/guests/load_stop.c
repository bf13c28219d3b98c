// build: -pthread -O2
// varies
// loses
// Proves: a thread that fills blocks for another one, and looks before each whether it is to stop, fills as many in every
// replica: it waits by semaphores, and by functions of its own with a condition and its lock (the LZMA SDK's match finder, lrzip).
#include "guest.h"
#include <pthread.h>
#include <semaphore.h>

struct event {
  pthread_mutex_t lock;
  pthread_cond_t cond;
  int is_set;
};

struct sync {
  struct event start, stopped;
  int exits, stops;
  unsigned blocks;
  uint64_t block[512];
  sem_t free, filled;
};

__attribute__((noinline)) static void event_set(struct event *e) {
  pthread_mutex_lock(&e->lock);
  e->is_set = 1;
  pthread_cond_broadcast(&e->cond);
  pthread_mutex_unlock(&e->lock);
}

__attribute__((noinline)) static void event_wait(struct event *e) {
  pthread_mutex_lock(&e->lock);
  while (!e->is_set)
    pthread_cond_wait(&e->cond, &e->lock);
  e->is_set = 0;
  pthread_mutex_unlock(&e->lock);
}

static void *fill(void *arg) {
  struct sync *p = arg;
  uint64_t seed = 1;
  for (;;) {
    unsigned blocks = 0;
    event_wait(&p->start);
    for (;;) {
      if (p->exits)
        return NULL;
      if (p->stops) {
        p->blocks += blocks;
        event_set(&p->stopped);
        break;
      }
      sem_wait(&p->free);
      for (unsigned k = guest_rand(&seed) % 500; k; k--)
        p->block[k] = guest_rand(&seed);
      blocks++;
      sem_post(&p->filled);
    }
  }
}

int main(void) {
  static struct sync s = {.start = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0},
                          .stopped = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}};
  pthread_t one;
  uint64_t seed = 7;
  CHECK(sem_init(&s.free, 0, 8) == 0 && sem_init(&s.filled, 0, 0) == 0);
  CHECK(pthread_create(&one, NULL, fill, &s) == 0);
  for (int i = 0; i < 200; i++) {
    s.stops = 0;
    event_set(&s.start);
    for (unsigned k = guest_rand(&seed) % 20; k; k--) {
      sem_wait(&s.filled);
      sem_post(&s.free);
    }
    s.stops = 1;
    sem_post(&s.free);
    event_wait(&s.stopped);
  }
  s.exits = 1;
  event_set(&s.start);
  CHECK(pthread_join(one, NULL) == 0);
  printf("%u blocks\n", s.blocks);
  guest_ok("load_stop");
}
