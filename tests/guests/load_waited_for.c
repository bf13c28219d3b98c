// build: -pthread -O2
// varies
// loses
// Proves: a word for which a function waits, by a condition, is loaded in order where the function only passes it on (Tcl closes the
// descriptor by which it wakes a thread, while that one says that it is gone).
#include "guest.h"
#include <pthread.h>

enum { ROUNDS = 3000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int trigger = -1;
static uint64_t sum;

__attribute__((noipa)) static void pass(int value) { sum = guest_mix(sum, value < 0); }

__attribute__((noipa)) static void begin(int fd) {
  pthread_mutex_lock(&lock);
  trigger = fd;
  pthread_mutex_unlock(&lock);
}

__attribute__((noipa)) static void end(void) {
  CHECK(write(trigger, "q", 1) == 1);
  pass(trigger);
  pthread_mutex_lock(&lock);
  while (trigger != -1)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void *notify(void *arg) {
  char byte;
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(read(*(int *)arg, &byte, 1) == 1);
    pthread_mutex_lock(&lock);
    trigger = -1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(void) {
  pthread_t t;
  int fds[2];
  CHECK(!pipe(fds));
  CHECK(!pthread_create(&t, NULL, notify, &fds[0]));
  for (int i = 0; i < ROUNDS; i++) {
    begin(fds[1]);
    end();
  }
  CHECK(!pthread_join(t, NULL));
  printf("%016llx\n", (unsigned long long)sum);
  guest_ok("load_waited_for");
}
