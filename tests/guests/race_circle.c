// build: -O1 -pthread
// loses
// Proves: a follower that a plain load has led to where a thread waits for a turn that never comes is found although another thread
// wakes up every 20 ms; with checkpoints the log is replayed for it.
// argv: which replica is to go astray the first time, the second time (its number as the agent counts, from 0), "f" for all but the first.
#include "guest.h"
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int is_over;

// What no load of a program may find: it stands for one that finds what another thread has just stored.
static int own_number(void) { return *(volatile int *)0x2fe510000004; }

static void *ticks(void *arg) {
  uint64_t *rounds = arg;
  pthread_mutex_lock(&own);
  for (; !is_over; ++*rounds) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 20000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&never, &own, &t);
  }
  pthread_mutex_unlock(&own);
  return NULL;
}

static void *work(void *arg) {
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&lock);
    ++*(uint64_t *)arg;
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void work_for_ms(int ms) {
  struct timespec t = {.tv_nsec = 1000000};
  uint64_t done = 0;
  for (; ms; ms--) {
    nanosleep(&t, NULL);
    work(&done);
  }
}

static int is_astray(const char *who) {
  return who[0] == 'f' ? own_number() != 0 : own_number() == atoi(who);
}

int main(int argc, char **argv) {
  pthread_t a, b;
  uint64_t rounds = 0, done = 0;
  CHECK(!pthread_create(&a, NULL, ticks, &rounds));
  for (int i = 1; i == 1 || i < argc; i++) {
    // (There are checkpoints by then.)
    work_for_ms(400);
    // Its order begins anew, in one that is astray: what is logged of it never comes there.
    if (argc > 1 && is_astray(argv[i]))
      pthread_mutex_init(&lock, NULL);
    CHECK(!pthread_create(&b, NULL, work, &done));
    CHECK(!pthread_join(b, NULL));
    printf("%lu\n", (unsigned long)done);
    fflush(stdout);
  }
  // (A run that changes its order for the last time has done so before it ends.)
  work_for_ms(200);
  pthread_mutex_lock(&own);
  is_over = 1;
  pthread_mutex_unlock(&own);
  CHECK(!pthread_join(a, NULL));
  guest_ok("race_circle");
}
