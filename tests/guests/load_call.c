// build: -pthread -O2
// loses
// Proves: a call right behind a load that is ordered leaves a return address behind the bytes of a call (mono finds in them by which
// entry of a table its compiled code has called), where there is room before the load, and where others branch to the load.
#include "guest.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 3000 };

static int words[2];

// Where the `call` before a return address goes; 0 if there is none.
__attribute__((used, noinline)) static uintptr_t called(const unsigned char *ret) {
  int32_t distance;
  memcpy(&distance, ret - 4, 4);
  return ret[-5] == 0xe8 ? (uintptr_t)ret + distance : 0;
}

// Returns where it was called, as far as the caller's bytes tell.
uintptr_t callee(void);
// Count, look at the count, and call.
uintptr_t room_before(int *count, int *seen);
uintptr_t branch_to_it(int *count, int *seen);

__asm__(".text\n"
        ".type callee, @function\n"
        "callee:\n"
        "  mov (%rsp), %rdi\n"
        "  jmp called\n"
        ".size callee, .-callee\n"

        ".type room_before, @function\n"
        "room_before:\n"
        "  push %rbx\n"
        "  push %r12\n"
        "  push %r13\n"
        "  mov %rdi, %rbx\n"
        "  mov %rsi, %r12\n"
        "  lock incl (%rbx)\n"
        "  mov %rbx, %rdi\n"
        "  xor %eax, %eax\n"
        "  mov %rbx, %rdi\n"
        "  xor %edx, %edx\n"
        "  mov (%rbx), %r13d\n"
        "  call callee\n"
        "  mov %r13d, (%r12)\n"
        "  pop %r13\n"
        "  pop %r12\n"
        "  pop %rbx\n"
        "  ret\n"
        ".size room_before, .-room_before\n"

        ".type branch_to_it, @function\n"
        "branch_to_it:\n"
        "  push %rbx\n"
        "  push %r12\n"
        "  push %r13\n"
        "  mov %rdi, %rbx\n"
        "  mov %rsi, %r12\n"
        "  lock incl (%rbx)\n"
        "  mov $2, %r8d\n"
        "1:\n"
        "  mov (%rbx), %r13d\n"
        "  call callee\n"
        "  mov %r13d, (%r12)\n"
        "  mov %rbx, %rdi\n"
        "  mov $2, %ecx\n"
        "  mov %rbx, %rdi\n"
        "  mov $3, %edx\n"
        "  dec %r8d\n"
        "  jnz 1b\n"
        "  pop %r13\n"
        "  pop %r12\n"
        "  pop %rbx\n"
        "  ret\n"
        ".size branch_to_it, .-branch_to_it\n");

static void *compute(void *arg) {
  uintptr_t sum = 0;
  for (int i = 0; i < ROUNDS; i++) {
    int seen[2] = {0, 0};
    CHECK(room_before(&words[0], &seen[0]) == (uintptr_t)callee);
    CHECK(branch_to_it(&words[1], &seen[1]) == (uintptr_t)callee);
    CHECK(seen[0] > i && seen[1] > i);
    sum = sum * 31 + (uintptr_t)seen[0] * 7 + (uintptr_t)seen[1];
  }
  *(uintptr_t *)arg = sum;
  return NULL;
}

int main(void) {
  pthread_t t[THREADS];
  uintptr_t sums[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&t[i], NULL, compute, &sums[i]) == 0);
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_join(t[i], NULL) == 0);
  CHECK(words[0] == THREADS * ROUNDS && words[1] == THREADS * ROUNDS);
  printf("%lx %lx %lx\n", sums[0], sums[1], sums[2]);
  guest_ok("load_call");
}
