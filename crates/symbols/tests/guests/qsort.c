// Stops itself inside a comparison that qsort calls.
#include <signal.h>
#include <stdlib.h>

static int values[2] = {2, 1};

__attribute__((noinline)) static int stop_here(int result) {
    raise(SIGSTOP);
    return result;
}

int compare(const void *a, const void *b) {
    return stop_here(*(const int *)a - *(const int *)b) + 1;
}

__attribute__((noinline)) int sort_all(void) {
    qsort(values, 2, sizeof values[0], compare);
    return values[0];
}

int main(void) { return sort_all() + 1; }
