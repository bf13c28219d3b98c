// Stops itself in a signal handler on an alternate stack, which interrupted a leaf function.
#include <signal.h>
#include <stdlib.h>

static volatile int *const nowhere = (volatile int *)8;

void handler(int number) {
    (void)number;
    raise(SIGSTOP);
    _Exit(0);
}

__attribute__((noinline)) int leaf(void) { return *nowhere; }

__attribute__((noinline)) int caller(void) { return leaf() + 1; }

int main(void) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, 0);
    sigaction(SIGSEGV, &action, 0);
    return caller() + 1;
}
