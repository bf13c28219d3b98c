/* reads FILE
 *
 * Reads a file again and again, in a few large reads, and prints a checksum of all that it has read.
 * Another thread computes meanwhile. Most of the heap is the buffer, so most faults there hit what is
 * being read, at all moments between the call and the last use. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES (4L << 20)
#define ROUNDS 60

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int over;

static int is_over(void)
{
	pthread_mutex_lock(&lock);
	int it_is = over;
	pthread_mutex_unlock(&lock);
	return it_is;
}

static void *computes(void *argument)
{
	uint64_t x = 88172645463325252ull;
	while (!is_over()) {
		for (int i = 0; i < 100000; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
		usleep(50);
	}
	return x == 0 ? argument : NULL;
}

/* All that the file has, as often as it fits; every other time at the descriptor's own offset. */
static long fill(int fd, char *buffer, int round)
{
	long done = 0, got;
	do {
		long room = BYTES - done;
		if (round % 2) {
			if (lseek(fd, 0, SEEK_SET) != 0)
				return -1;
			got = read(fd, buffer + done, room);
		} else {
			got = pread(fd, buffer + done, room, 0);
		}
		done += got;
	} while (got > 0 && done < BYTES);
	return got < 0 ? -1 : done;
}

int main(int argc, char **argv)
{
	pthread_t other;
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	char *buffer = malloc(BYTES);
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || buffer == NULL || pthread_create(&other, NULL, computes, NULL) != 0) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	uint64_t sum = 0;
	for (int round = 0; round < ROUNDS; round++) {
		long bytes = fill(fd, buffer, round);
		if (bytes < 8) {
			perror(argv[1]);
			return 1;
		}
		for (long i = 0; i + 8 <= bytes; i += 8)
			sum = (sum ^ *(uint64_t *)(buffer + i)) * 0x100000001b3u;
	}
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_mutex_unlock(&lock);
	pthread_join(other, NULL);
	printf("%016lx\n", (unsigned long)sum);
	return 0;
}
