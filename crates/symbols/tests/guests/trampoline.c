// Runs a copy of a function in anonymous memory, and prints where copy and original are.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COPY_BYTES 64

// Position-independent: pushes, stops the process, waits.
__asm__(".text\n.type original, @function\noriginal:\n.cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\n"
        "mov $39, %eax\nsyscall\n"              // getpid
        "mov %eax, %edi\nmov $19, %esi\nmov $62, %eax\nsyscall\n" // kill(.., SIGSTOP)
        "1: jmp 1b\npop %rbx\nret\n.cfi_endproc\n.size original, .-original\n");
void original(void);

__attribute__((noinline)) int call_copy(void (*copy)(void)) {
    copy();
    return 1;
}

int main(void) {
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, (void *)original, COPY_BYTES);
    printf("%p %p\n", page, (void *)original);
    fflush(stdout);
    return call_copy((void (*)(void))page) + 1;
}
