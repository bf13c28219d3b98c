// Mappings in a region of the program's own, and what becomes of them: which pages are there, readable, writable, and
// what they hold.
#include "calls.h"
#include <signal.h>

static char *page_of(unsigned n) { return me->region + (uint64_t)n * PAGE; }
static char *place(void) {
  if (one_in(12))
    return PICK(char *, (char *)8, (char *)0xffff800000000000, (char *)-4096ul, me->region + 1, me->region - PAGE);
  return page_of(below(REGION_PAGES));
}
static uint64_t extent(void) {
  if (one_in(10))
    return PICK(uint64_t, 0, 1, 4097, LONG_MAX, -1ul, -4096ul);
  return (1 + below(8)) * PAGE;
}
static int prot(void) {
  // (Not to be executed: what is rewritten there shows. Not PROT_SEM, either.)
  return one_in(20) ? PICK(int, 0x100, PROT_GROWSDOWN | 1, 0x40) : PICK(int, 0, 1, 3, 3, 3, 2);
}

// Each page of the region: missing or shut (-), readable, writable, and what its second word is. (A mask is read from
// there, with a way to use it that is none, and written there.)
static void look(void) {
  print("  ");
  for (int i = 0; i < REGION_PAGES; i++) {
    char *at = page_of(i) + 8;
    uint64_t word;
    if (syscall(SYS_rt_sigprocmask, 99, at, NULL, 8) == -1 && errno == EFAULT) {
      print("-");
      continue;
    }
    memcpy(&word, at, 8);
    int writable = syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, at, 8) == 0;
    if (writable)
      memcpy(at, &word, 8);
    print("%s%c", writable ? "w" : "r", word == 0 ? '0' : (char)('a' + mixed(word, 3) % 26));
  }
  print("\n");
}

static void do_mmap(void) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | PICK(int, MAP_FIXED, MAP_FIXED, MAP_FIXED_NOREPLACE) | FLAGS(MAP_NORESERVE, MAP_POPULATE);
  int f = -1;
  long from = 0;
  if (one_in(4))
    flags = (flags & ~MAP_PRIVATE) | MAP_SHARED;
  else if (one_in(3)) {
    // (Writable and shared files are an option's.)
    flags &= ~MAP_ANONYMOUS, f = fd();
    from = one_in(6) ? PICK(long, 1, -1, -4096, LONG_MAX) : (long)below(3) * PAGE;
  }
  if (one_in(12))
    flags |= PICK(int, MAP_GROWSDOWN, MAP_TYPE, 0x800000);
  char *p = place();
  // (Only there: elsewhere the kernel chooses, or takes what is not the region's.)
  // (Nor at 0, where root can: NULL would lead somewhere.)
  if (p < me->region)
    return;
  uint64_t size = extent();
  if (p >= me->region && p < page_of(REGION_PAGES) && size <= 8 * PAGE && p + size > page_of(REGION_PAGES))
    size = PAGE;
  CALL(mmap, p, size, prot(), flags, f, from);
  look();
}
static void mmap_anywhere(void) {
  // Where it lies the kernel chooses: that it is there, and can be used, shows.
  size_t size = (1 + below(30)) * PAGE;
  long hint = one_in(3) ? PICK(long, 0x7000, 1, -4096) : 0;
  print("%u mmap(%ld)\n", me->step, hint);
  char *p = mmap((void *)hint, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    print("  %s\n", strerrorname_np(errno));
    return;
  }
  p[size - 1] = 1;
  size_t larger = (1 + below(60)) * PAGE;
  char *moved = mremap(p, size, larger, PICK(int, 0, MREMAP_MAYMOVE, MREMAP_MAYMOVE));
  if (moved == MAP_FAILED) {
    // (Whether there is room behind it is chance where it may not move.)
    moved = p, larger = size;
  }
  print("  aligned %d, last %d\n", ((uintptr_t)moved & (PAGE - 1)) == 0, larger >= size ? moved[size - 1] : 0);
  CHECK(munmap(moved, larger) == 0);
}
static void do_munmap(void) {
  char *p = place();
  uint64_t size = extent();
  if (p < me->region && (uintptr_t)p != 8)
    return;
  if (size > 8 * PAGE && p < page_of(REGION_PAGES) && p >= me->region && size < LONG_MAX)
    return;
  CALL(munmap, p, size);
  look();
}
static void do_mprotect(void) {
  char *p = place();
  CALL(mprotect, p, extent() % (1ul << 40), prot());
  look();
}
static void do_mremap(void) {
  char *to = page_of(below(REGION_PAGES - 8));
  char *from = page_of(below(REGION_PAGES - 8));
  uint64_t old = (1 + below(6)) * PAGE, new = one_in(10) ? PICK(uint64_t, 0, LONG_MAX, 1) : (1 + below(8)) * PAGE;
  if (one_in(10))
    old = PICK(uint64_t, 0, 1, 5000);
  // To a place of the region, or where it is.
  int flags = one_in(2) ? MREMAP_MAYMOVE | MREMAP_FIXED | (one_in(4) ? 4 : 0) : one_in(10) ? PICK(int, 2, 8, 6) : 0;
  if (flags == 0 && from + new > page_of(REGION_PAGES))
    return;
  CALL(mremap, one_in(12) ? from + 1 : from, old, new, flags, one_in(12) ? to + 8 : to);
  look();
}
static void do_madvise(void) {
  // (Not of what the kernel then does in its own time.)
  CALL(madvise, page_of(below(REGION_PAGES)), extent() % (1ul << 40), PICK(int, MADV_NORMAL, MADV_RANDOM, MADV_DONTNEED, MADV_DONTNEED, MADV_WILLNEED, 99, -1, 16, 17));
  look();
}
static void do_store(void) {
  // By the kernel, where it can.
  int p[2];
  if (pipe2(p, O_NONBLOCK) != 0)
    return;
  *(uint64_t *)(me->scratch + 8) = next_random();
  CHECK(write(p[1], me->scratch, 16) == 16);
  CALL(read, p[0], page_of(below(REGION_PAGES)), 16);
  close(p[0]), close(p[1]);
  look();
}
static void do_sync(void) { CALL(msync, page_of(below(REGION_PAGES)), extent() % (1ul << 40), PICK(int, 1, 2, 4, 0, 5, 8)); }
static void do_lock(void) {
  char *p = page_of(below(REGION_PAGES));
  switch (below(3)) {
  case 0:
    CALL(mlock, p, extent() % (1ul << 40));
    break;
  case 1:
    CALL(munlock, p, extent() % (1ul << 40));
    break;
  default:
    CALL(mlock2, p, extent() % (1ul << 40), PICK(int, 0, 1, 2));
  }
}
static void do_mincore(void) {
  // (Which pages are in memory is each replica's own.)
  CALL(mincore, one_in(8) ? place() : page_of(below(REGION_PAGES)), extent() % (1ul << 40), me->loose);
}
static void do_brk(void) {
  static char *begin;
  long now = syscall(SYS_brk, 0);
  begin = (char *)now;
  long more = one_in(6) ? PICK(long, 1l << 45, -1, 1) : (long)below(8) * PAGE;
  long got = syscall(SYS_brk, (long)begin + more);
  print("%u brk(+%ld): %+ld\n", me->step, more, got - now);
  CHECK(syscall(SYS_brk, now) == now);
}

const struct action memory_actions[] = {
    {"mmap", do_mmap, 6, 0},
    {"mmap anywhere", mmap_anywhere, 1, 1},
    {"munmap", do_munmap, 2, 0},
    {"mprotect", do_mprotect, 3, 0},
    {"mremap", do_mremap, 3, 0},
    {"madvise", do_madvise, 2, 0},
    {"store", do_store, 4, 0},
    {"mincore", do_mincore, 1, 0},
    {"sync", do_sync, 1, 0},
    {"lock", do_lock, 1, 0},
    {"brk", do_brk, 1, 0},
    {0},
};
