// What every guest shares: a check that names its line, the success token, a
// temporary path, and a mixing function whose result depends on order.
#ifndef GUEST_H
#define GUEST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GUEST_CHECK_EXIT 99

#define CHECK(cond)                                                            \
  do {                                                                         \
    if (!(cond)) {                                                             \
      fprintf(stderr, "%s:%d: CHECK(%s) failed, errno %d (%s)\n", __FILE__,    \
              __LINE__, #cond, errno, strerror(errno));                        \
      _exit(GUEST_CHECK_EXIT);                                                 \
    }                                                                          \
  } while (0)

// The last line of every guest that came to its end.
static inline void guest_ok(const char *name) {
  printf("GUEST-OK %s\n", name);
  fflush(stdout);
}

// A path in the temporary directory the harness gives; one static buffer.
static inline const char *guest_tmp(const char *leaf) {
  static char path[4096];
  const char *dir = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/guest-%s", dir && *dir ? dir : "/tmp", leaf);
  return path;
}

// Order-dependent: mix(mix(h, a), b) differs from mix(mix(h, b), a).
static inline uint64_t guest_mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdull;
  return h ^ (h >> 33);
}

static inline uint64_t guest_hash(uint64_t h, const void *p, size_t n) {
  const unsigned char *b = (const unsigned char *)p;
  for (size_t i = 0; i < n; i++)
    h = (h ^ b[i]) * 0x100000001b3ull;
  return h;
}

// xorshift: uneven work and content that every run repeats.
static inline uint64_t guest_rand(uint64_t *s) {
  *s ^= *s << 13;
  *s ^= *s >> 7;
  *s ^= *s << 17;
  return *s;
}

// Burns a little time that differs from call to call; the compiler may not.
static inline void guest_work(uint64_t *s, unsigned most) {
  for (unsigned n = guest_rand(s) % (most + 1); n > 0; n--)
    __asm__ volatile("" ::: "memory");
}
#endif
