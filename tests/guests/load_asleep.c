// build:
// loses
// delayed
// Proves: a worker sets a byte before it waits for a condition, and who has work for it looks at that byte without the lock
// to see whether to wake it, in a function with no atomic instruction, no loop and no pause (jemalloc's background threads).
// What the look has found decides whether a lock is taken.
#include "guest.h"
#include <pthread.h>
#include <stdatomic.h>

enum { WORKERS = 4, ROUNDS = 500 };

struct worker {
  pthread_mutex_t lock;
  pthread_cond_t work;
  long done, todo;
  int end;
  atomic_bool asleep;
};

static struct worker workers[WORKERS];
static long woken, left;
static uint64_t seen;

static __attribute__((noipa)) void sleep_until_woken(struct worker *w) {
  atomic_store_explicit(&w->asleep, 1, memory_order_release);
  pthread_cond_wait(&w->work, &w->lock);
  atomic_store_explicit(&w->asleep, 0, memory_order_release);
}

static void *work(void *of) {
  struct worker *w = of;
  pthread_mutex_lock(&w->lock);
  while (!w->end || w->todo) {
    if (w->todo) {
      w->done += w->todo;
      w->todo = 0;
    } else {
      sleep_until_woken(w);
    }
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static __attribute__((noipa)) void wake(struct worker *w) {
  pthread_mutex_lock(&w->lock);
  w->todo++;
  pthread_cond_signal(&w->work);
  pthread_mutex_unlock(&w->lock);
  woken++;
}

static __attribute__((noipa)) void perhaps_wake(struct worker *w) {
  if (atomic_load_explicit(&w->asleep, memory_order_acquire))
    wake(w);
  else
    left++;
}

int main(void) {
  pthread_t threads[WORKERS];
  uint64_t seed = 7;
  for (int n = 0; n < WORKERS; n++) {
    CHECK(!pthread_mutex_init(&workers[n].lock, NULL) && !pthread_cond_init(&workers[n].work, NULL));
    CHECK(!pthread_create(&threads[n], NULL, work, &workers[n]));
  }
  for (long round = 0; round < ROUNDS; round++)
    for (int n = 0; n < WORKERS; n++) {
      guest_work(&seed, guest_rand(&seed) % 60);
      perhaps_wake(&workers[n]);
      seen = guest_mix(seen, (uint64_t)woken);
    }
  long done = 0;
  for (int n = 0; n < WORKERS; n++) {
    pthread_mutex_lock(&workers[n].lock);
    workers[n].end = 1;
    pthread_cond_signal(&workers[n].work);
    pthread_mutex_unlock(&workers[n].lock);
    CHECK(!pthread_join(threads[n], NULL));
    done += workers[n].done;
  }
  CHECK(done == woken && woken + left == (long)ROUNDS * WORKERS);
  FILE *out = fopen("/dev/null", "w");
  CHECK(out);
  fprintf(out, "%016llx\n", (unsigned long long)seen);
  CHECK(!fclose(out));
  guest_ok("load_asleep");
}
