// build:
// varies
// loses
// Proves: every kind of atomic instruction, in all widths: xadd, xchg,
// cmpxchg, cmpxchg16b, lock add/sub/and/or/xor/inc/dec/neg/not, bts/btr/btc,
// with register and immediate operands and flags used afterwards.
#include "guest.h"
#include <pthread.h>
static struct {
  uint8_t b;
  uint16_t w;
  uint32_t l, bits, flags;
  uint64_t q, swap, cas;
  __attribute__((aligned(16))) uint64_t pair[2];
} v;
static void *body(void *arg) {
  uint64_t s = (uintptr_t)arg + 1, h = 0;
  for (int i = 0; i < 5000; i++) {
    uint8_t b = 1, c;
    uint16_t w = 3;
    uint32_t l = 5;
    uint64_t q = 7, x = (uintptr_t)arg;
    __asm__ volatile("lock xaddb %0,%1" : "+q"(b), "+m"(v.b)::"cc");
    __asm__ volatile("lock xaddw %0,%1" : "+r"(w), "+m"(v.w)::"cc");
    __asm__ volatile("lock xaddl %0,%1" : "+r"(l), "+m"(v.l)::"cc");
    __asm__ volatile("lock xaddq %0,%1" : "+r"(q), "+m"(v.q)::"cc");
    __asm__ volatile("xchgq %0,%1" : "+r"(x), "+m"(v.swap));
    h = guest_mix(guest_mix(guest_mix(guest_mix(guest_mix(h, b), w), l), q), x);
    __asm__ volatile("lock btsl $3,%1; setc %0" : "=q"(c), "+m"(v.bits)::"cc");
    h = guest_mix(h, c);
    __asm__ volatile("lock btrl %2,%1; setc %0" : "=q"(c), "+m"(v.bits) : "r"(3) : "cc");
    h = guest_mix(h, c);
    __asm__ volatile("lock btcl $5,%1; setc %0" : "=q"(c), "+m"(v.bits)::"cc");
    h = guest_mix(h, c);
    __asm__ volatile("lock incl %1; sets %0" : "=q"(c), "+m"(v.flags)::"cc");
    __asm__ volatile("lock subl $1,%1; setz %0" : "=q"(c), "+m"(v.flags)::"cc");
    h = guest_mix(h, c);
    __asm__ volatile("lock addl %1,%0" : "+m"(v.flags) : "r"(2) : "cc");
    __asm__ volatile("lock orl $0x40000000,%0" : "+m"(v.flags)::"cc");
    __asm__ volatile("lock andl $0x3fffffff,%1; setz %0" : "=q"(c), "+m"(v.flags)::"cc");
    h = guest_mix(h, c);
    __asm__ volatile("lock decl %1; setz %0" : "=q"(c), "+m"(v.flags)::"cc");
    h = guest_mix(h, c);
    __asm__ volatile("lock decl %0" : "+m"(v.flags)::"cc");
    __asm__ volatile("lock xorl %1,%0; lock notl %0; lock negl %0; lock negl %0; "
                     "lock notl %0; lock xorl %1,%0"
                     : "+m"(v.bits)
                     : "r"(0x100 << (uintptr_t)arg)
                     : "cc");
    uint64_t old = h & 3, tries = 0;
    for (;;) {
      uint64_t want = old * 3 + 1;
      __asm__ volatile("lock cmpxchgq %3,%1; sete %2"
                       : "+a"(old), "+m"(v.cas), "=q"(c)
                       : "r"(want)
                       : "cc");
      tries++;
      if (c)
        break;
    }
    h = guest_mix(h, old + tries);
    uint64_t lo = 0, hi = 0;
    for (c = 0; !c;)
      __asm__ volatile("mov %%rax,%%rbx; mov %%rdx,%%rcx; inc %%rbx; add $2,%%rcx;"
                       "lock cmpxchg16b %2; sete %3"
                       : "+a"(lo), "+d"(hi), "+m"(v.pair), "=q"(c)::"rbx", "rcx", "cc");
    h = guest_mix(guest_mix(h, lo), hi);
    guest_work(&s, 60);
  }
  return (void *)h;
}
int main(void) {
  pthread_t t[4];
  for (uintptr_t i = 0; i < 4; i++)
    CHECK(!pthread_create(&t[i], NULL, body, (void *)i));
  for (int i = 0; i < 4; i++) {
    void *r;
    CHECK(!pthread_join(t[i], &r));
    printf("%016llx\n", (unsigned long long)(uintptr_t)r);
  }
  CHECK(v.b == (uint8_t)20000 && v.w == (uint16_t)60000 && v.l == 100000);
  CHECK(v.q == 140000 && v.pair[0] == 20000 && v.pair[1] == 40000);
  guest_ok("atomic_kinds");
}
