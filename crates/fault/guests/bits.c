// Counts bits: a few threads share a table, sum up under a lock, and say how far they are. What it
// prints depends on every word of the table: a fault that changes one shows.
// Build: cc -O1 -pthread bits.c -o bits. Run: bits [ROUNDS [THREADS]]
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 1 << 15, MAX_THREADS = 16 };

static uint64_t *table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static uint64_t total;
static int rounds = 40, threads = 4;

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int count(uint64_t word) {
    int n = 0;
    for (; word; word &= word - 1)
        n++;
    return n;
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    for (int round = 0; round < rounds; round++) {
        uint64_t part = 0;
        for (int i = me; i < WORDS; i += threads) {
            uint64_t word = table[i] ^ (uint64_t)round;
            part += (uint64_t)count(word);
            table[i] = word * 6364136223846793005u + 1442695040888963407u;
        }
        pthread_mutex_lock(&lock);
        total += part * (uint64_t)(me + 1);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&barrier);
        if (me == 0 && round % 8 == 7) {
            uint64_t sum = 0;
            for (int i = 0; i < WORDS; i++)
                sum = sum * 3 + table[i];
            printf("round %d: %llx\n", round, (unsigned long long)sum);
            fflush(stdout);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread[MAX_THREADS];
    uint64_t state = 88172645463325252u;
    if (argc > 1)
        rounds = atoi(argv[1]);
    if (argc > 2)
        threads = atoi(argv[2]);
    if (threads < 1 || threads > MAX_THREADS)
        return 2;
    table = malloc(WORDS * sizeof *table);
    if (!table)
        return 1;
    for (int i = 0; i < WORDS; i++)
        table[i] = next(&state);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(intptr_t)i))
            return 1;
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    uint64_t bits = 0;
    for (int i = 0; i < WORDS; i++)
        bits += (uint64_t)count(table[i]);
    printf("bits: %llu, total: %llu\n", (unsigned long long)bits, (unsigned long long)total);
    free(table);
    return 0;
}
