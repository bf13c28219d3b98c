/* A null system call: getppid, not through a libc that might remember it. */
#define _GNU_SOURCE
#include "bench.h"
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long n = operations(argc, argv);
	for (long i = 0; i < warm_up(n); i++)
		syscall(SYS_getppid);
	double begin = now_ns();
	for (long i = 0; i < n; i++)
		syscall(SYS_getppid);
	return report(begin, now_ns(), n);
}
