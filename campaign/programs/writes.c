/* writes FILE
 *
 * Writes a buffer to a file again and again, a little changed each time, in large writes. Another thread
 * computes meanwhile. Most of the heap is the buffer, so most faults there hit what is being written. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES (1L << 20)
#define ROUNDS 24

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

int main(int argc, char **argv)
{
	pthread_t other;
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	char *buffer = malloc(BYTES);
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
	if (fd < 0 || buffer == NULL || pthread_create(&other, NULL, computes, NULL) != 0) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	memset(buffer, 7, BYTES);
	for (int round = 0; round < ROUNDS; round++) {
		buffer[round * 4099] += round;
		struct iovec halves[2] = { { buffer, BYTES / 2 }, { buffer + BYTES / 2, BYTES / 2 } };
		long done = round % 3 == 0 ? write(fd, buffer, BYTES)
			    : round % 3 == 1 ? pwrite(fd, buffer, BYTES, round * BYTES)
					     : writev(fd, halves, 2);
		if (done != BYTES || lseek(fd, (round + 1) * BYTES, SEEK_SET) < 0) {
			perror(argv[1]);
			return 1;
		}
	}
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_mutex_unlock(&lock);
	pthread_join(other, NULL);
	puts("written");
	return 0;
}
