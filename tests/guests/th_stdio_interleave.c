// build:
// varies
// loses
// Proves: printf from eight threads to one stream: lines are whole, and their
// order (stdio's lock) is the same in every replica, to stdout and to a file.
#include "guest.h"
#include <pthread.h>
#define THREADS 8
#define LINES 400
static FILE *file;
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1;
  for (int i = 0; i < LINES; i++) {
    printf("thread %lu line %d\n", (unsigned long)(uintptr_t)arg, i);
    fprintf(file, "%lu %d\n", (unsigned long)(uintptr_t)arg, i);
    if (i % 50 == 0)
      fflush(stdout);
    guest_work(&s, 400);
    if (i % 20 == 0) {
      flockfile(stdout);
      fputs("two ", stdout);
      puts("parts");
      funlockfile(stdout);
    }
  }
  return NULL;
}
int main(void) {
  const char *path = guest_tmp("interleave");
  CHECK(file = fopen(path, "w+"));
  pthread_t t[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  rewind(file);
  int next[THREADS] = {0}, who, line;
  while (fscanf(file, "%d %d", &who, &line) == 2)
    CHECK(next[who]++ == line);
  for (int i = 0; i < THREADS; i++)
    CHECK(next[i] == LINES);
  CHECK(!fclose(file) && !unlink(path));
  guest_ok("th_stdio_interleave");
}
