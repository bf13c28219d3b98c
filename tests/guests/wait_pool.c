// build: -O2
// loses
// not in clocks: order decided by plain loads is not repeated there
// delayed
// Proves: a pool whose workers poll for work as OpenBLAS's do: a plain pointer for each, the processor given away
// in between (so calls depend on how often it is polled), and a sleep under a lock when the time stamp counter says
// that nothing has come for long. The master polls for the results.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <x86intrin.h>

enum { WORKERS = 3, JOBS = 150, CELLS = 64, PATIENCE = 200000 };
struct job {
  uint64_t *from, *to;
  long seed;
};
static struct worker {
  _Alignas(128) struct job *volatile queue;
  volatile long asleep;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  uint64_t yields, sleeps;
} workers[WORKERS];
static struct job last;

static void *work(void *arg) {
  struct worker *w = arg;
  for (;;) {
    uint64_t since = __rdtsc();
    while (!w->queue) {
      sched_yield();
      w->yields++;
      if (__rdtsc() - since > PATIENCE && !w->queue) {
        pthread_mutex_lock(&w->lock);
        w->asleep = 1;
        w->sleeps++;
        while (w->asleep && !w->queue)
          pthread_cond_wait(&w->wake, &w->lock);
        w->asleep = 0;
        pthread_mutex_unlock(&w->lock);
        since = __rdtsc();
      }
    }
    struct job *job = w->queue;
    if (job == &last)
      return arg;
    for (int i = 0; i < CELLS; i++)
      job->to[i] = guest_mix(job->from[i], job->seed);
    __sync_synchronize();
    w->queue = NULL;
  }
}

static void give(struct worker *w, struct job *job) {
  __sync_synchronize();
  w->queue = job;
  pthread_mutex_lock(&w->lock);
  if (w->asleep) {
    w->asleep = 0;
    pthread_cond_signal(&w->wake);
  }
  pthread_mutex_unlock(&w->lock);
}

int main(void) {
  static uint64_t a[WORKERS][CELLS], b[WORKERS][CELLS], expected[WORKERS][CELLS];
  pthread_t t[WORKERS];
  for (int i = 0; i < WORKERS; i++) {
    CHECK(!pthread_mutex_init(&workers[i].lock, NULL) && !pthread_cond_init(&workers[i].wake, NULL));
    CHECK(!pthread_create(&t[i], NULL, work, &workers[i]));
  }
  for (int n = 0; n < JOBS; n++) {
    struct job jobs[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
      jobs[i] = (struct job){n & 1 ? b[i] : a[i], n & 1 ? a[(i + 1) % WORKERS] : b[(i + 1) % WORKERS], n + i};
      give(&workers[i], &jobs[i]);
    }
    uint64_t now[WORKERS][CELLS];
    for (int i = 0; i < WORKERS; i++)
      for (int k = 0; k < CELLS; k++)
        now[(i + 1) % WORKERS][k] = guest_mix(expected[i][k], n + i);
    __builtin_memcpy(expected, now, sizeof now);
    for (int i = 0; i < WORKERS; i++)
      while (workers[i].queue)
        sched_yield();
    for (int i = 0; i < WORKERS; i++)
      for (int k = 0; k < CELLS; k++)
        CHECK((n & 1 ? a : b)[i][k] == expected[i][k]);
  }
  uint64_t yields = 0, sleeps = 0;
  for (int i = 0; i < WORKERS; i++)
    give(&workers[i], &last);
  for (int i = 0; i < WORKERS; i++) {
    CHECK(!pthread_join(t[i], NULL));
    yields += workers[i].yields;
    sleeps += workers[i].sleeps;
  }
  printf("%llu yields, %llu sleeps\n", (unsigned long long)yields, (unsigned long long)sleeps);
  guest_ok("wait_pool");
}
