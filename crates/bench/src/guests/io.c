/* io read|write BYTES OPERATIONS: from /dev/zero, to /dev/null. */
#define _GNU_SOURCE
#include "bench.h"
#include <fcntl.h>
#include <unistd.h>

static char buffer[1 << 20];

static void once(int fd, int writes, size_t bytes)
{
	ssize_t done = writes ? write(fd, buffer, bytes) : read(fd, buffer, bytes);
	if (done != (ssize_t)bytes)
		fail(writes ? "write" : "read");
}

int main(int argc, char **argv)
{
	long n = operations(argc, argv);
	if (argc != 4 || (size_t)atol(argv[2]) > sizeof buffer)
		return 2;
	int writes = strcmp(argv[1], "write") == 0;
	size_t bytes = (size_t)atol(argv[2]);
	int fd = writes ? open("/dev/null", O_WRONLY) : open("/dev/zero", O_RDONLY);
	if (fd < 0)
		fail("open");
	memset(buffer, 'g', sizeof buffer);
	for (long i = 0; i < warm_up(n); i++)
		once(fd, writes, bytes);
	double begin = now_ns();
	for (long i = 0; i < n; i++)
		once(fd, writes, bytes);
	return report(begin, now_ns(), n);
}
