/* What the guests of the bench share: a clock, and the one line they print. */
#ifndef GERYON_BENCH_H
#define GERYON_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The last argument: how many operations to time. */
static inline long operations(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[argc - 1]) : 0;
	if (n < 1) {
		fprintf(stderr, "usage: %s [...] OPERATIONS\n", argv[0]);
		exit(2);
	}
	return n;
}

/* Operations before the clock starts: sites are patched, caches warm. */
static inline long warm_up(long n)
{
	return n / 10 + 1;
}

static inline void fail(const char *what)
{
	perror(what);
	exit(1);
}

static inline int report(double begin_ns, double end_ns, long n)
{
	printf("%.3f ns/op\n", (end_ns - begin_ns) / (double)n);
	return fflush(stdout) == 0 ? 0 : 1;
}

#endif
