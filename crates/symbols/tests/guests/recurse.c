// Stops itself at the bottom of a recursion whose frames differ in size and saved registers.
#include <alloca.h>
#include <signal.h>
#include <string.h>

__attribute__((noinline)) int even(int depth);

__attribute__((noinline)) int odd(int depth) {
    volatile char pad[40];
    pad[depth % 40] = 1;
    return even(depth - 1) + pad[depth % 40];
}

__attribute__((noinline)) int even(int depth) {
    if (depth == 0) {
        raise(SIGSTOP);
        return 1;
    }
    // Its size is not known at compile time, so that a frame pointer is needed here.
    char *room = alloca(depth * 8);
    memset(room, depth, depth * 8);
    return odd(depth - 1) + room[depth];
}

// A name as C++ would mangle it: space::deep(int).
__attribute__((noinline)) int deep(int depth) __asm__("_ZN5space4deepEi");
int deep(int depth) { return even(depth) + 1; }

int main(void) { return deep(20) + 1; }
