/* What programs call that `geryon cc` has compiled: the functions of the thread sanitizer, of which those that are atomic are done in
 * a way that Geryon's planner knows for sure. The others do nothing.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define GERYON_MARKS_ONLY
#include "geryon.h"

#pragma GCC visibility push(hidden)

#define UPDATE(bits, type, name)                                                                                                       \
  type __tsan_atomic##bits##_fetch_##name(volatile type *a, type v, int mo) {                                                          \
    (void)mo;                                                                                                                          \
    return __atomic_fetch_##name(a, v, __ATOMIC_SEQ_CST);                                                                              \
  }

#define COMPARE(bits, type, kind)                                                                                                      \
  int __tsan_atomic##bits##_compare_exchange_##kind(volatile type *a, type *c, type v, int mo, int fmo) {                              \
    (void)mo, (void)fmo;                                                                                                               \
    return __atomic_compare_exchange_n(a, c, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                                \
  }

#define OF_SIZE(bits, type)                                                                                                            \
  type __tsan_atomic##bits##_load(const volatile type *a, int mo) {                                                                    \
    (void)mo;                                                                                                                          \
    return geryon_load##bits(a);                                                                                                       \
  }                                                                                                                                    \
  void __tsan_atomic##bits##_store(volatile type *a, type v, int mo) {                                                                 \
    if (mo == __ATOMIC_SEQ_CST)                                                                                                        \
      (void)__atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                                                               \
    else                                                                                                                               \
      geryon_store##bits(a, v);                                                                                                        \
  }                                                                                                                                    \
  type __tsan_atomic##bits##_exchange(volatile type *a, type v, int mo) {                                                              \
    (void)mo;                                                                                                                          \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                                                                \
  }                                                                                                                                    \
  UPDATE(bits, type, add)                                                                                                              \
  UPDATE(bits, type, sub)                                                                                                              \
  UPDATE(bits, type, and)                                                                                                              \
  UPDATE(bits, type, or)                                                                                                               \
  UPDATE(bits, type, xor)                                                                                                              \
  UPDATE(bits, type, nand)                                                                                                             \
  COMPARE(bits, type, strong)                                                                                                          \
  COMPARE(bits, type, weak)                                                                                                            \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type *a, type c, type v, int mo, int fmo) {                                 \
    (void)mo, (void)fmo;                                                                                                               \
    __atomic_compare_exchange_n(a, &c, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                                      \
    return c;                                                                                                                          \
  }

OF_SIZE(8, uint8_t)
OF_SIZE(16, uint16_t)
OF_SIZE(32, uint32_t)
OF_SIZE(64, uint64_t)

/* Of sixteen bytes: all by one instruction. */
typedef unsigned __int128 wide;

static int exchange_wide(volatile wide *a, wide *c, wide v) {
  uint64_t low = (uint64_t)*c, high = (uint64_t)(*c >> 64);
  unsigned char equal;
  __asm__ volatile("lock cmpxchg16b %1\n\tsete %0"
                   : "=q"(equal), "+m"(*a), "+a"(low), "+d"(high)
                   : "b"((uint64_t)v), "c"((uint64_t)(v >> 64))
                   : "memory", "cc");
  *c = (wide)high << 64 | low;
  return equal;
}

wide __tsan_atomic128_load(const volatile wide *a, int mo) {
  wide seen = 0;
  (void)mo;
  (void)exchange_wide((volatile wide *)a, &seen, 0);
  return seen;
}

#define WIDE(name, expression)                                                                                                         \
  wide __tsan_atomic128_##name(volatile wide *a, wide v, int mo) {                                                                     \
    wide seen = 0;                                                                                                                     \
    (void)mo;                                                                                                                          \
    while (!exchange_wide(a, &seen, expression))                                                                                       \
      ;                                                                                                                                \
    return seen;                                                                                                                       \
  }
WIDE(exchange, v)
WIDE(fetch_add, seen + v)
WIDE(fetch_sub, seen - v)
WIDE(fetch_and, seen &v)
WIDE(fetch_or, seen | v)
WIDE(fetch_xor, seen ^ v)
WIDE(fetch_nand, ~(seen & v))

void __tsan_atomic128_store(volatile wide *a, wide v, int mo) { (void)__tsan_atomic128_exchange(a, v, mo); }

int __tsan_atomic128_compare_exchange_strong(volatile wide *a, wide *c, wide v, int mo, int fmo) {
  (void)mo, (void)fmo;
  return exchange_wide(a, c, v);
}

int __tsan_atomic128_compare_exchange_weak(volatile wide *a, wide *c, wide v, int mo, int fmo) {
  (void)mo, (void)fmo;
  return exchange_wide(a, c, v);
}

wide __tsan_atomic128_compare_exchange_val(volatile wide *a, wide c, wide v, int mo, int fmo) {
  (void)mo, (void)fmo;
  (void)exchange_wide(a, &c, v);
  return c;
}

void __tsan_atomic_thread_fence(int mo) {
  (void)mo;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int mo) {
  (void)mo;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* What a detector of races would see. */
#define OF_ACCESS(kind)                                                                                                                \
  void __tsan_##kind##1(void *a) { (void)a; }                                                                                          \
  void __tsan_##kind##2(void *a) { (void)a; }                                                                                          \
  void __tsan_##kind##4(void *a) { (void)a; }                                                                                          \
  void __tsan_##kind##8(void *a) { (void)a; }                                                                                          \
  void __tsan_##kind##16(void *a) { (void)a; }
OF_ACCESS(read)
OF_ACCESS(write)
OF_ACCESS(read_write)
OF_ACCESS(unaligned_read)
OF_ACCESS(unaligned_write)
OF_ACCESS(unaligned_read_write)
OF_ACCESS(volatile_read)
OF_ACCESS(volatile_write)
OF_ACCESS(unaligned_volatile_read)
OF_ACCESS(unaligned_volatile_write)

void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}
void __tsan_ignore_thread_begin(void) {}
void __tsan_ignore_thread_end(void) {}
void __tsan_read_range(void *a, unsigned long n) { (void)a, (void)n; }
void __tsan_write_range(void *a, unsigned long n) { (void)a, (void)n; }
void __tsan_vptr_read(void **a) { (void)a; }
void __tsan_vptr_update(void **a, void *v) { (void)a, (void)v; }

/* (Clang calls these in the place of the originals.) */
void *__tsan_memcpy(void *to, const void *from, unsigned long n) { return __builtin_memcpy(to, from, n); }
void *__tsan_memmove(void *to, const void *from, unsigned long n) { return __builtin_memmove(to, from, n); }
void *__tsan_memset(void *to, int v, unsigned long n) { return __builtin_memset(to, v, n); }

#pragma GCC visibility pop
