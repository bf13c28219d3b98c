/* A thread created and joined. */
#define _GNU_SOURCE
#include "bench.h"
#include <pthread.h>

static void *nothing(void *argument)
{
	return argument;
}

static void once(void)
{
	pthread_t id;
	if (pthread_create(&id, NULL, nothing, NULL) != 0)
		fail("pthread_create");
	pthread_join(id, NULL);
}

int main(int argc, char **argv)
{
	long n = operations(argc, argv);
	for (long i = 0; i < warm_up(n); i++)
		once();
	double begin = now_ns();
	for (long i = 0; i < n; i++)
		once();
	return report(begin, now_ns(), n);
}
