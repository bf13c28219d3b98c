// build: -pthread -O2
// deterministic
// loses
// Proves: a thread that was waited for is gone, whatever its stack is used for then (its id lies on a stack that the program has
// given it): the next thread is born.
#include "guest.h"
#include <pthread.h>
#include <sys/mman.h>
#define ROUNDS 60
#define BYTES (256 << 10)

static uint64_t sum;

static void *add(void *arg) {
  sum = guest_mix(sum, (uint64_t)(uintptr_t)arg);
  return arg;
}

int main(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char *stack = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
  CHECK(stack != MAP_FAILED);
  for (uintptr_t i = 0; i < ROUNDS; i++) {
    pthread_attr_t a;
    pthread_t t;
    void *result;
    CHECK(!pthread_attr_init(&a) && !pthread_attr_setstack(&a, stack, BYTES));
    CHECK(!pthread_create(&t, &a, add, (void *)i));
    CHECK(!pthread_join(t, &result) && (uintptr_t)result == i);
    memset(stack, (int)i + 1, BYTES);
    pthread_attr_destroy(&a);
  }
  printf("%016llx\n", (unsigned long long)sum);
  guest_ok("own_stacks");
}
