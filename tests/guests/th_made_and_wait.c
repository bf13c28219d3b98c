// build:
// Proves: threads that were made one after the other and wait all go on; tests of recovery copy the replica while
// they are made, and have the copy lead. (It had noted the id that its source's thread has, was taken for one with a
// thread too many, and never led.)
#include "guest.h"
#include <pthread.h>
#include <time.h>
#define THREADS 24
static pthread_barrier_t there, go;
static void *work(void *arg) {
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&go);
  return (void *)((uintptr_t)arg * 3);
}
int main(void) {
  pthread_t t[THREADS];
  CHECK(!pthread_barrier_init(&there, NULL, THREADS + 1));
  CHECK(!pthread_barrier_init(&go, NULL, THREADS + 1));
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)i));
  // (Who follows is late, and makes its threads meanwhile.)
  for (int i = 0; i < 12; i++) {
    nanosleep(&(struct timespec){0, 4000000}, NULL);
    printf("line %d\n", i);
    fflush(stdout);
  }
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&go);
  uintptr_t sum = 0;
  for (int i = 0; i < THREADS; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    sum += (uintptr_t)r;
  }
  printf("sum %zu\n", sum);
  guest_ok("th_made_and_wait");
}
