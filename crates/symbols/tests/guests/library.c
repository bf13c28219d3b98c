// A shared library for `uses_library.c`.
#include <signal.h>

static __attribute__((noipa)) int hidden(int a) {
    raise(SIGSTOP);
    return a + 1;
}

int exported(int (*back)(int), int a) { return a ? back(a - 1) + 1 : hidden(a) + 1; }
