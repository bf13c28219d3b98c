/* compute STEPS: four threads that only compute, on private memory, and meet at
 * their join. Prints a signature, which is the same in every run. */
#define _GNU_SOURCE
#include "bench.h"
#include <pthread.h>
#include <stdint.h>

#define THREADS 4
#define WORDS 4096

struct worker {
	pthread_t id;
	long steps;
	uint64_t words[WORDS];
};

static struct worker workers[THREADS];

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void *work(void *argument)
{
	struct worker *w = argument;
	uint64_t state = (uint64_t)(w - workers) + 1;
	for (long i = 0; i < w->steps; i++) {
		uint64_t r = next(&state);
		uint64_t *word = &w->words[r % WORDS];
		*word = *word * 6364136223846793005u + r;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long steps = operations(argc, argv) / THREADS + 1;
	uint64_t signature = 0;
	for (int i = 0; i < THREADS; i++) {
		workers[i].steps = steps;
		if (pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
			fail("pthread_create");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].id, NULL);
		for (int j = 0; j < WORDS; j++)
			signature = signature * 31 + workers[i].words[j];
	}
	printf("%016llx\n", (unsigned long long)signature);
	return 0;
}
