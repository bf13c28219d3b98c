// build:
// loses
// delayed
// Proves: who comes to something that is made once sees by a plain load whether it is there, in a function without any
// atomic instruction; and what was published with it is there then.
#include "guest.h"
#include <pthread.h>

enum { THREADS = 4, THINGS = 400 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thing {
  int made_by, parts[6];
} *things[THINGS];
static struct thing made[THINGS * THREADS];
static int next;
static uint64_t seen[THREADS];

// (As compilers make it of a static object of C++: a flag, and its address given to who makes the object.)
static char guard;
static uint64_t object;

__attribute__((noipa)) static void make(char *flag, int me) {
  pthread_mutex_lock(&lock);
  if (!*flag) {
    object = 100 + (uint64_t)me;
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&lock);
}

__attribute__((noipa)) static uint64_t once(int me) {
  if (!__atomic_load_n(&guard, __ATOMIC_ACQUIRE))
    make(&guard, me);
  return object;
}

__attribute__((noipa)) static struct thing *first(struct thing **place, int me) {
  struct thing *t = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (t)
    return t;
  struct thing *mine = &made[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)];
  struct thing *none = NULL;
  mine->made_by = me;
  for (int i = 0; i < 6; i++)
    mine->parts[i] = me * 10 + i;
  if (__atomic_compare_exchange_n(place, &none, mine, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return mine;
  return none;
}

static void *body(void *arg) {
  int me = (int)(intptr_t)arg;
  uint64_t h = once(me), seed = (uint64_t)me + 1;
  for (int i = 0; i < THINGS; i++) {
    guest_work(&seed, guest_rand(&seed) % 60);
    struct thing *t = first(&things[i], me);
    h = guest_mix(h, (uint64_t)t->made_by);
    for (int k = 0; k < 6; k++)
      h = guest_mix(h, (uint64_t)t->parts[k]);
  }
  seen[me] = h;
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  for (intptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  FILE *out = fopen("/dev/null", "w");
  CHECK(out);
  for (int i = 0; i < THREADS; i++)
    fprintf(out, "%016llx\n", (unsigned long long)seen[i]);
  CHECK(!fclose(out));
  guest_ok("load_guard");
}
