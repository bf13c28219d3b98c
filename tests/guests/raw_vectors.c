// build: -mavx2
// deterministic
// loses
// Proves: the upper halves of the ymm registers, MXCSR and the x87 control
// word survive system calls, locks and atomics (skipped without AVX2).
#include "guest.h"
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
  if (!__builtin_cpu_supports("avx2")) {
    guest_ok("raw_vectors");
    return 0;
  }
  static uint64_t in[16][4] __attribute__((aligned(32))), out[16][4] __attribute__((aligned(32)));
  uint64_t s = 3;
  long r;
  uint32_t csr = 0x1fc0, csr_after;
  uint16_t cw = 0x027f, cw_after;
  for (int k = 0; k < 2000; k++) {
    for (int i = 0; i < 64; i++)
      in[i / 4][i % 4] = guest_rand(&s);
    __asm__ volatile(
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovaps 32*\\i(%[in]),%%ymm\\i\n.endr\n"
        "ldmxcsr %[csr]\n fldcw %[cw]\n"
        "syscall\n lock incq (%[word])\n"
        "stmxcsr %[csr_after]\n fnstcw %[cw_after]\n"
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n vmovaps %%ymm\\i,32*\\i(%[out])\n.endr\n"
        : "=a"(r), [csr_after] "=m"(csr_after), [cw_after] "=m"(cw_after)
        : "a"(k & 1 ? SYS_getppid : SYS_sched_yield), [in] "b"(in), [out] "r"(out),
          [word] "r"(&s), [csr] "m"(csr), [cw] "m"(cw)
        : "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
          "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    CHECK(!memcmp(in, out, sizeof in) && (csr_after & ~0x3fu) == csr && cw_after == cw);
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    s |= 1;
  }
  guest_ok("raw_vectors");
}
