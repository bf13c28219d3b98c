/* An uncontended lock and unlock, in a process that has a second thread, which
 * sleeps on another mutex: so that no shortcut for one thread applies. */
#define _GNU_SOURCE
#include "bench.h"
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t idle_until = PTHREAD_MUTEX_INITIALIZER;

static void *idle(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&idle_until);
	pthread_mutex_unlock(&idle_until);
	return NULL;
}

static void pairs(long n)
{
	for (long i = 0; i < n; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

int main(int argc, char **argv)
{
	long n = operations(argc, argv);
	pthread_t id;
	pthread_mutex_lock(&idle_until);
	if (pthread_create(&id, NULL, idle, NULL) != 0)
		fail("pthread_create");
	pairs(warm_up(n));
	double begin = now_ns();
	pairs(n);
	double end = now_ns();
	pthread_mutex_unlock(&idle_until);
	pthread_join(id, NULL);
	return report(begin, end, n);
}
