// build: -pthread -O2
// varies
// loses
// Proves: who polls without a pause does not keep a follower from telling that a value which was stored plainly has come and gone:
// it has come as far as its leader was when that was found, though its leader polls on.
#include "guest.h"
#include <pthread.h>
#include <unistd.h>
#define ROUNDS 20000

struct queue {
  uint32_t head, tail;
  uint64_t pad[7];
};
static struct queue *queues;
static uint32_t *over, *begun;

// In a function of its own, which does not look at it.
__attribute__((noipa)) static void consume(struct queue *q, uint32_t n) {
  __asm__ volatile("movl %1, %0" : "=m"(q->head) : "r"(n) : "memory");
}

__attribute__((noipa)) static void produce(struct queue *q) {
  uint32_t one = 1;
  __asm__ volatile("lock xadd %0, %1" : "+r"(one), "+m"(q->tail)::"memory");
}

// Which of two is shorter? It is given to that.
__attribute__((noipa)) static int choose(struct queue *a, struct queue *b) {
  uint32_t of_a, of_b, one = 1;
  __asm__ volatile("movl %2, %0\n subl %3, %0\n movl %4, %1\n subl %5, %1"
                   : "=&r"(of_a), "=&r"(of_b)
                   : "m"(a->tail), "m"(a->head), "m"(b->tail), "m"(b->head)
                   : "memory");
  struct queue *q = (int32_t)(of_a - of_b) <= 0 ? a : b;
  __asm__ volatile("lock xadd %0, %1" : "+r"(one), "+m"(q->tail)::"memory");
  return q == a;
}

// It does not sleep when there is nothing to take.
static void *take(void *arg) {
  struct queue *q = arg;
  __atomic_add_fetch(begun, 1, __ATOMIC_SEQ_CST);
  for (uint32_t n = 0; !__atomic_load_n(over, __ATOMIC_ACQUIRE);)
    if (n != __atomic_load_n(&q->tail, __ATOMIC_ACQUIRE))
      consume(q, ++n);
  return NULL;
}

int main(void) {
  pthread_t t[2];
  uint64_t chosen = (uint64_t)getpid();
  CHECK((queues = calloc(2, sizeof *queues)) && (over = calloc(2, 64)));
  begun = over + 16;
  for (int i = 0; i < 2; i++)
    CHECK(!pthread_create(&t[i], NULL, take, &queues[i]));
  while (__atomic_load_n(begun, __ATOMIC_ACQUIRE) != 2)
    usleep(100);
  for (int i = 0; i < ROUNDS; i++) {
    if (i % 8 == 0)
      produce(&queues[i / 8 % 2]);
    chosen = guest_mix(chosen, choose(&queues[0], &queues[1]));
  }
  __atomic_store_n(over, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < 2; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%016llx\n", (unsigned long long)chosen);
  guest_ok("load_poll");
}
