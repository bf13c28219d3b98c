// Stops itself, then runs code of many shapes, to be single-stepped: prologues, epilogues, calls
// through a lazily bound PLT, the loader's resolver, string functions, tail calls.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

__attribute__((noinline)) int tail(int a) { return abs(a - 3); }

__attribute__((noinline)) int work(int seed) {
    int numbers[16];
    char text[64];
    srandom(seed);
    for (int i = 0; i < 16; i++) numbers[i] = random() % 100;
    qsort(numbers, 16, sizeof numbers[0], compare);
    snprintf(text, sizeof text, "%d %s %5.2f", numbers[3], "text", 1.5);
    char *copy = strdup(text);
    int length = strlen(copy) + strtol("77", 0, 10);
    free(copy);
    return tail(length);
}

__attribute__((noinline)) void finish(void) { raise(SIGSTOP); }

int main(void) {
    raise(SIGSTOP);
    int result = work(5);
    finish();
    return result & 1;
}
