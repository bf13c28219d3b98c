// Choices: a step's random numbers, and the memory, descriptors, lengths and paths that calls are given.
#include "calls.h"
#include <sys/uio.h>

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t h = a * 0x9e3779b97f4a7c15ull + b;
  h ^= h >> 30, h *= 0xbf58476d1ce4e5b9ull;
  h ^= h >> 27, h *= 0x94d049bb133111ebull;
  return h ^ h >> 31;
}

uint64_t next_random(void) { return mixed(me->random += 0x9e3779b97f4a7c15ull, 1); }
uint64_t below(uint64_t n) { return next_random() % n; }
int one_in(unsigned n) { return below(n) == 0; }

int flags_of(const int *flags, int count) {
  int some = 0;
  for (int i = 0; i < count; i++)
    some |= one_in(3) ? flags[i] : 0;
  return some;
}

// The arena: rw rw ro | rw rw none | rw rw hole | rw ... rw, and nothing behind it.
int protection(int page) {
  switch (page) {
  case 2:
    return PROT_READ;
  case 5:
    return PROT_NONE;
  case 8:
    return -1;
  default:
    return PROT_READ | PROT_WRITE;
  }
}

void fill(void) {
  for (int i = 0; i < PAGES; i++)
    if (protection(i) == (PROT_READ | PROT_WRITE))
      for (int k = 0; k < PAGE; k += 8) {
        uint64_t word = mixed(i, k) & ~0xffull; // (each string ends soon)
        for (int b = 0; b < 64; b += 8)
          if ((word >> b & 0xff) == '/') // (a path from here leads nowhere else)
            word ^= 0x80ull << b;
        memcpy(me->arena + i * PAGE + k, &word, 8);
      }
}

static uint64_t hash(uint64_t h, const char *p, size_t n) {
  for (size_t i = 0; i < n; i += 8) {
    uint64_t word;
    memcpy(&word, p + i, 8);
    h = (h ^ word) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

uint64_t digest(void) {
  uint64_t h = 1;
  for (int i = 0; i < PAGES; i++)
    if (protection(i) >= PROT_READ)
      h = hash(h, me->arena + i * PAGE, PAGE);
  return hash(h, me->scratch, PAGE);
}

static char *fixed(uintptr_t address, size_t pages) {
  int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  char *p = mmap((void *)address, pages * PAGE, PROT_READ | PROT_WRITE, how, -1, 0);
  CHECK(p == (char *)address);
  return p;
}

void make_context(struct context *c, int index) {
  struct context *before = me;
  uintptr_t base = 0x100000000000 + index * 0x10000000000;
  c->arena = fixed(base, PAGES);
  c->scratch = fixed(base + 0x1000000, 1);
  c->names = fixed(base + 0x2000000, 2);
  c->loose = fixed(base + 0x2800000, 1);
  c->region = (char *)base + 0x3000000;
  c->room = 1 << 16;
  c->text = malloc(c->room);
  CHECK(c->text != NULL);
  me = c;
  fill();
  for (int i = 0; i < PAGES; i++) {
    if (protection(i) == -1)
      CHECK(munmap(c->arena + i * PAGE, PAGE) == 0);
    else
      CHECK(mprotect(c->arena + i * PAGE, PAGE, protection(i)) == 0);
  }
  me = before;
}

int fd(void) {
  if (one_in(20))
    return PICK(int, -1, -100, 150, 1000, INT_MAX, INT_MIN);
  int f = me->first_fd + (int)below(me->fds);
  for (int tries = 0; tries < 3 && fcntl(f, F_GETFD) < 0; tries++)
    f = me->first_fd + (int)below(me->fds);
  return f;
}

// What is nowhere natively; in `nowhere` also where Geryon lies, where nothing is, neither. (Not in what points
// to further memory: there the kernel finds what is Geryon's.)
void *nowhere_nested(void) {
  char *edges[] = {me->arena + 8 * PAGE, me->arena + 5 * PAGE + 100, me->arena + PAGES * PAGE};
  if (one_in(4))
    return edges[below(3)];
  return (void *)PICK(uintptr_t, 1, 8, 0xfff, 0xffff800000000000, 0x8000000000000000, 0x7ffffffff000, 0x7fffffffeff8, -1ul, -8ul,
                      0xdead000000000000);
}
void *nowhere(void) {
  if (one_in(4))
    return (void *)PICK(uintptr_t, 0x2fe500000000, 0x2fe500001000, 0x2fe510000000, 0x2fe520000000, 0x2fe52000f000, 0x2fe580000000,
                        0x2fe580001000, 0x2fe4fffffff8);
  return nowhere_nested();
}

static void *somewhere(int nested) {
  switch (below(12)) {
  case 0:
    return one_in(3) ? NULL : nested ? nowhere_nested() : nowhere();
  case 1:
  case 2:
  case 3:
    return me->arena + (2 + 3 * below(3)) * PAGE - below(70); // what comes next cannot be written
  case 4:
    return me->arena + (2 + 3 * below(3)) * PAGE - below(5000);
  case 5:
    return me->arena + (2 + 3 * below(3)) * PAGE + below(PAGE);
  case 6:
    return me->arena + PAGES * PAGE - below(600);
  default:
    return good();
  }
}

void *at(void) { return somewhere(0); }
void *at_nested(void) { return somewhere(1); }
void *good(void) { return me->arena + 9 * PAGE + below(9 * PAGE); }

uint64_t len(void) {
  switch (below(12)) {
  case 0:
    return 0;
  case 1:
    return PICK(uint64_t, 0x7fffffff, 0x80000000, 0xffffffff, LONG_MAX, 1ul << 63, -1ul, -4096ul);
  case 2:
    return PAGE - 2 + below(5);
  case 3:
    return below(20000);
  default:
    return 1 + below(300);
  }
}
uint64_t small(void) { return one_in(5) ? len() : 1 + below(200); }
uint64_t offset(void) { return one_in(12) ? PICK(uint64_t, -1ul, LONG_MAX, 1ul << 40, 1ul << 63) : below(9000); }

const char *named(const char *path) {
  // (Slots of 256 bytes; long ones are made of the second page.)
  char *slot = me->names + (me->name++ % 16) * 256;
  snprintf(slot, 256, "%s", path);
  return slot;
}

const char *file_path(void) {
  static const char *names[] = {"a", "b", "c", "d", "dir", "dir/a", "dir/b", "link", "none/x", "a/x", "fifo", "", ".", "dir/", "dir/./a"};
  if (one_in(12))
    return at();
  if (one_in(40)) {
    // A name, or a path, that is too long.
    int slashes = one_in(2);
    memset(me->names + PAGE, 'n', PAGE);
    for (int i = 5; slashes && i < PAGE; i += 6)
      me->names[PAGE + i] = '/';
    me->names[2 * PAGE - 1] = 0;
    return me->names + PAGE + (slashes ? 6 * below(600) : 0);
  }
  return named(names[below(sizeof names / sizeof *names)]);
}

const char *path(void) { return one_in(20) ? named("..") : file_path(); }

struct iovec *vector(int *count) {
  struct iovec *v = (struct iovec *)me->scratch;
  *count = 1 + below(4);
  for (int i = 0; i < *count; i++)
    v[i] = (struct iovec){at_nested(), one_in(8) ? len() : below(400)};
  if (one_in(12))
    *count = PICK(int, 0, -1, 1024, 1025, INT_MAX);
  memset(v + 4, 0, PAGE - 4 * sizeof *v);
  return one_in(15) ? at() : v;
}
