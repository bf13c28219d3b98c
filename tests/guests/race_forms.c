// build: -O2
// args: 3 20000
// beyond
// Proves: loads and stores of all the forms that can be ordered when they are asked for: plain ones, arithmetic with what is
// loaded, updates of memory; each decides what is printed. Without that it is right, or reported.
// argv[1]: threads, argv[2]: rounds of each.
#include "guest.h"
#include <pthread.h>

#define MOST 8
#define CELLS 64

static uint32_t cell[CELLS], sums[MOST];
static int rounds = 20000;

// (A compiler chooses the forms that it likes.)
#define FORM(code, s, word) __asm__ volatile(code : "+r"(s), "+m"(word) : : "cc")

static void *mix(void *arg) {
  uint32_t me = (uintptr_t)arg, s = me * 77 + 1;
  for (int i = 0; i < rounds; i++) {
    uint32_t *word = &cell[s % CELLS], *other = &cell[(s >> 8) % CELLS];
    FORM("addl %1, %0", s, *word);
    FORM("xorl %1, %0", s, *other);
    s = s * 2654435761u + 7;
    word = &cell[(s >> 16) % CELLS];
    FORM("subl %1, %0", s, *word);
    FORM("orl $5, %1", s, *other);
    FORM("incl %1", s, *word);
    FORM("addl %0, %1", s, *other);
    other = &cell[(s >> 4) % CELLS];
    FORM("andl %1, %0", s, *other);
    FORM("orl %1, %0", s, *word);
    s = s * 2654435761u + i;
    FORM("movl %0, %1", s, *word);
  }
  sums[me] = s;
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 3;
  if (argc > 2)
    rounds = atoi(argv[2]);
  CHECK(threads > 0 && threads <= MOST);
  pthread_t t[MOST];
  for (int i = 0; i < threads; i++)
    CHECK(!pthread_create(&t[i], NULL, mix, (void *)(uintptr_t)i));
  for (int i = 0; i < threads; i++)
    CHECK(!pthread_join(t[i], NULL));
  for (int i = 0; i < threads; i++)
    printf("%u\n", sums[i]);
  guest_ok("race_forms");
}
