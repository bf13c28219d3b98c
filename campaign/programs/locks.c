// Producers and consumers with a bounded queue (a mutex, two condition variables), a table under
// many mutexes, a list on the heap under a reader-writer lock. The result does not depend on the
// order.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PRODUCERS = 2, CONSUMERS = 3, ITEMS = 9000, QUEUE = 16, CELLS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static uint32_t queue[QUEUE];
static int head, count, producing = PRODUCERS;

static struct {
  pthread_mutex_t lock;
  uint64_t sum;
} table[CELLS];

struct node {
  struct node *next;
  uint64_t value;
};
static pthread_rwlock_t list_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct node *list;

static void *produce(void *index) {
  uint32_t x = 17 + (uint32_t)(long)index;
  for (int i = 0; i < ITEMS; i++) {
    x = x * 1664525 + 1013904223;
    pthread_mutex_lock(&lock);
    while (count == QUEUE)
      pthread_cond_wait(&emptied, &lock);
    queue[(head + count++) % QUEUE] = x;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
  }
  pthread_mutex_lock(&lock);
  producing--;
  pthread_cond_broadcast(&filled);
  pthread_mutex_unlock(&lock);
  return 0;
}

static uint64_t mixed(uint64_t x) {
  for (int i = 0; i < 200; i++)
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u + 1;
  return x;
}

static void *consume(void *unused) {
  for (;;) {
    pthread_mutex_lock(&lock);
    while (count == 0 && producing)
      pthread_cond_wait(&filled, &lock);
    if (count == 0) {
      pthread_mutex_unlock(&lock);
      return unused;
    }
    uint32_t x = queue[head];
    head = (head + 1) % QUEUE;
    count--;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&lock);
    uint64_t value = mixed(x);
    int cell = x >> 8 & (CELLS - 1);
    pthread_mutex_lock(&table[cell].lock);
    table[cell].sum += value;
    pthread_mutex_unlock(&table[cell].lock);
    if (x % 16 == 0) {
      struct node *new = malloc(sizeof *new);
      new->value = value;
      pthread_rwlock_wrlock(&list_lock);
      new->next = list;
      list = new;
      pthread_rwlock_unlock(&list_lock);
    }
  }
}

int main(void) {
  for (int i = 0; i < CELLS; i++)
    pthread_mutex_init(&table[i].lock, 0);
  pthread_t threads[PRODUCERS + CONSUMERS];
  for (long i = 0; i < PRODUCERS + CONSUMERS; i++)
    pthread_create(&threads[i], 0, i < PRODUCERS ? produce : consume, (void *)i);
  for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
    pthread_join(threads[i], 0);
  for (int i = 0; i < CELLS; i++)
    printf("%d %016llx\n", i, (unsigned long long)table[i].sum);
  uint64_t sum = 0, nodes = 0;
  for (struct node *n = list; n; n = n->next, nodes++)
    sum += n->value;
  printf("%llu nodes, %016llx\n", (unsigned long long)nodes, (unsigned long long)sum);
}
