// build:
// loses
// Proves: a large write to a blocking pipe is whole, as it is natively when no
// signal comes, though the process is copied meanwhile.
#include "guest.h"
#include <pthread.h>
#include <time.h>
#define PIECE (1 << 20)
#define PIECES 24

static int pipes[2];

static void *writer(void *arg) {
  char *piece = malloc(PIECE);
  CHECK(piece);
  for (int n = 0; n < PIECES; n++) {
    memset(piece, n, PIECE);
    CHECK(write(pipes[1], piece, PIECE) == PIECE);
  }
  close(pipes[1]);
  free(piece);
  return arg;
}

int main(void) {
  static char part[16384];
  pthread_t t;
  size_t got = 0;
  ssize_t n;
  CHECK(!pipe(pipes) && !pthread_create(&t, NULL, writer, NULL));
  while ((n = read(pipes[0], part, sizeof part)) > 0) {
    for (ssize_t i = 0; i < n; i++)
      CHECK(part[i] == (char)((got + i) / PIECE));
    got += n;
    nanosleep(&(struct timespec){0, 300000}, NULL);
  }
  CHECK(n == 0 && got == (size_t)PIECE * PIECES && !pthread_join(t, NULL));
  guest_ok("checkpoint_big_write");
}
