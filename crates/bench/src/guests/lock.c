/* lock THREADS OPERATIONS: all threads together lock, increment and unlock
 * OPERATIONS times. The figure is wall time for each operation, whoever did it:
 * from the first thread that began to the last that ended. */
#define _GNU_SOURCE
#include "bench.h"
#include <pthread.h>

#define THREADS_MAX 64

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static long counter;
static long share;

struct worker {
	pthread_t id;
	double begin;
	double end;
};

static void increment(long times)
{
	for (long i = 0; i < times; i++) {
		pthread_mutex_lock(&mutex);
		counter++;
		pthread_mutex_unlock(&mutex);
	}
}

static void *work(void *argument)
{
	struct worker *w = argument;
	increment(warm_up(share));
	pthread_barrier_wait(&start);
	w->begin = now_ns();
	increment(share);
	w->end = now_ns();
	return NULL;
}

int main(int argc, char **argv)
{
	long n = operations(argc, argv);
	long threads = argc == 3 ? atol(argv[1]) : 0;
	struct worker workers[THREADS_MAX];
	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	share = (n + threads - 1) / threads;
	pthread_barrier_init(&start, NULL, (unsigned)threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
			fail("pthread_create");
	double begin = 0, end = 0;
	for (long i = 0; i < threads; i++) {
		pthread_join(workers[i].id, NULL);
		if (i == 0 || workers[i].begin < begin)
			begin = workers[i].begin;
		if (i == 0 || workers[i].end > end)
			end = workers[i].end;
	}
	if (counter != threads * (share + warm_up(share))) {
		fprintf(stderr, "the counter is wrong: %ld\n", counter);
		return 1;
	}
	return report(begin, end, threads * share);
}
