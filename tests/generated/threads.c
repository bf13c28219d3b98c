// Threads that each take steps on objects of their own, at once or by turns.
#include "calls.h"
#include <pthread.h>
#include <sys/socket.h>

enum { MOST = 4, STEPS = 12, THREADS_FDS = 210, OWN_FDS = 5 };
static struct context contexts[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int threads, turn, by_turns;
static unsigned long counter;

static void *be_thread(void *of) {
  me = of;
  int index = (int)(me - contexts);
  for (unsigned i = 0; i < STEPS; i++) {
    CHECK(pthread_mutex_lock(&lock) == 0);
    while (by_turns && turn % threads != index)
      CHECK(pthread_cond_wait(&changed, &lock) == 0);
    counter += i + 1;
    if (by_turns) {
      one_step(i);
      turn++;
      CHECK(pthread_cond_broadcast(&changed) == 0);
    }
    CHECK(pthread_mutex_unlock(&lock) == 0);
    if (!by_turns)
      one_step(i);
  }
  return NULL;
}

static void take(int *at, int from) {
  CHECK(from >= 0 && dup3(from, *at, O_CLOEXEC) == *at && close(from) == 0);
  (*at)++;
}

static void do_threads(void) {
  if (me->depth > 0)
    return;
  struct context *mine = me;
  pthread_t ids[MOST];
  threads = 2 + (int)below(MOST - 1), turn = 0, counter = 0, by_turns = one_in(2);
  for (int i = 0; i < threads; i++) {
    struct context *c = &contexts[i];
    if (c->arena == NULL)
      make_context(c, i + 1);
    c->seed = mixed(mine->random, i), c->is_thread = 1, c->used = 0;
    c->first_fd = THREADS_FDS + OWN_FDS * i, c->fds = OWN_FDS;
    int at = c->first_fd, p[2];
    take(&at, open("/dev/zero", O_RDONLY | O_CLOEXEC));
    take(&at, (int)syscall(SYS_memfd_create, "t", 0));
    CHECK(pipe2(p, O_NONBLOCK) == 0);
    take(&at, p[0]), take(&at, p[1]);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p) == 0);
    take(&at, p[0]);
    close(p[1]);
  }
  print("%u %d threads%s\n", mine->step, threads, by_turns ? " by turns" : "");
  flush();
  for (int i = 0; i < threads; i++)
    CHECK(pthread_create(&ids[i], NULL, be_thread, &contexts[i]) == 0);
  for (int i = 0; i < threads; i++)
    CHECK(pthread_join(ids[i], NULL) == 0);
  for (int i = 0; i < threads; i++) {
    struct context *c = &contexts[i];
    print("  thread %d\n", i);
    for (size_t at = 0; at < c->used;) {
      int n = (int)(c->used - at > 1000 ? 1000 : c->used - at);
      print("%.*s", n, c->text + at);
      at += n;
    }
    for (int k = 0; k < OWN_FDS; k++)
      close(c->first_fd + k);
  }
  print("  counter %lu\n", counter);
}

const struct action thread_actions[] = {
    {"threads", do_threads, 1, 0},
    {0},
};
