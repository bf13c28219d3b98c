/* recovery MEGABYTES THREADS small|huge fork|wait
 *
 * Touches that much memory, in pages of that size, and starts threads that are blocked in one way or
 * another. The first one takes naps, and writes a byte now and then; it notes its longest nap and its
 * longest write. Prints "ready". A byte on stdin starts the measurement (what was noted before is
 * called quiet), with `fork` by a fork of its own; the end of stdin ends it. */
#define _GNU_SOURCE
#include "bench.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define HUGE (2L << 20)
#define THREADS_MAX 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ends = PTHREAD_COND_INITIALIZER;
static int over, pipes[2];

static void nap(long us)
{
	struct timespec t = { 0, us * 1000 };
	nanosleep(&t, NULL);
}

static int is_over(void)
{
	pthread_mutex_lock(&lock);
	int o = over;
	pthread_mutex_unlock(&lock);
	return o;
}

static void *waits(void *argument)
{
	pthread_mutex_lock(&lock);
	while (!over)
		pthread_cond_wait(&ends, &lock);
	pthread_mutex_unlock(&lock);
	return argument;
}

static void *reads(void *argument)
{
	char byte;
	while (read(pipes[0], &byte, 1) > 0)
		;
	return argument;
}

static void *naps(void *argument)
{
	while (!is_over())
		nap(50000);
	return argument;
}

static void touch(long bytes, int huge)
{
	if (bytes == 0)
		return;
	char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		fail("mmap");
	p = (char *)(((uintptr_t)p + HUGE - 1) & -HUGE);
	if (madvise(p, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 && huge)
		fail("madvise");
	for (long i = 0; i < bytes; i += 4096)
		p[i] = 1;
}

static void raise_to(double *most, double ns)
{
	if (ns > *most)
		*most = ns;
}

int main(int argc, char **argv)
{
	void *(*bodies[])(void *) = { waits, reads, naps };
	static pthread_t threads[THREADS_MAX];
	int count = argc == 5 ? atoi(argv[2]) - 1 : -1;
	if (count < 0 || count > THREADS_MAX) {
		fprintf(stderr, "usage: %s MEGABYTES THREADS small|huge fork|wait\n", argv[0]);
		return 2;
	}
	int forks = strcmp(argv[4], "fork") == 0;
	int sink = open("/dev/null", O_WRONLY);
	if (sink < 0 || pipe(pipes) != 0)
		fail("open");
	touch(atol(argv[1]) << 20, strcmp(argv[3], "huge") == 0);
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, bodies[i % 3], NULL) != 0)
			fail("pthread_create");
	nap(20000);
	printf("ready\n");
	fflush(stdout);

	double longest_nap = 0, longest_write = 0, quiet_nap = 0, quiet_write = 0, fork_ns = 0;
	for (;;) {
		double before = now_ns();
		nap(200);
		double between = now_ns();
		if (write(sink, "x", 1) != 1)
			fail("write");
		double after = now_ns();
		raise_to(&longest_nap, between - before);
		raise_to(&longest_write, after - between);

		struct pollfd input = { 0, POLLIN, 0 };
		char byte;
		if (poll(&input, 1, 0) <= 0)
			continue;
		if (read(0, &byte, 1) <= 0)
			break;
		quiet_nap = longest_nap;
		quiet_write = longest_write;
		longest_nap = longest_write = 0;
		if (forks) {
			double begin = now_ns();
			pid_t child = fork();
			fork_ns = now_ns() - begin;
			if (child == 0)
				_exit(0);
			if (child < 0 || waitpid(child, NULL, 0) != child)
				fail("fork");
		}
	}
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_cond_broadcast(&ends);
	pthread_mutex_unlock(&lock);
	close(pipes[1]);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("%.0f %.0f %.0f %.0f %.0f\n", quiet_nap / 1e3, quiet_write / 1e3, longest_nap / 1e3,
	       longest_write / 1e3, fork_ns / 1e3);
	return 0;
}
