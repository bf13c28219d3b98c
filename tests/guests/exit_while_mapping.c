// build: -pthread -O2
// deterministic
// loses
// Proves: a process ends while threads of it map files: a follower that ends first has yet to map what its leader has, and
// the leader does not wait for that.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#define THREADS 3
#define BYTES (64 << 10)

static void *map(void *file) {
  int fd = open(file, O_RDONLY);
  CHECK(fd >= 0);
  for (;;) {
    volatile char *p = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(p != MAP_FAILED);
    (void)*p;
    CHECK(!munmap((void *)p, BYTES));
  }
}

int main(int argc, char **argv) {
  (void)argc;
  pthread_t t;
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t, NULL, map, argv[0]));
  usleep(30000);
  guest_ok("exit_while_mapping");
  exit(0);
}
