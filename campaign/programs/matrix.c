// Multiplies matrices of doubles with four threads and a barrier after each product: vector
// registers and memory.
#include <pthread.h>
#include <stdio.h>

enum { N = 192, THREADS = 4, PRODUCTS = 12 };

static double a[N][N], b[N][N], c[2][N][N];
static pthread_barrier_t barrier;

static void rows(int first, int last, double (*x)[N], double (*z)[N]) {
  for (int i = first; i < last; i++) {
    for (int j = 0; j < N; j++)
      z[i][j] = 0;
    for (int k = 0; k < N; k++)
      for (int j = 0; j < N; j++)
        z[i][j] += x[i][k] * b[k][j];
    // Kept small, so that no product overflows.
    for (int j = 0; j < N; j++)
      z[i][j] -= (long)z[i][j] / 8 * 8;
  }
}

static void *work(void *index) {
  int me = (int)(long)index, first = N * me / THREADS, last = N * (me + 1) / THREADS;
  for (int p = 0; p < PRODUCTS; p++) {
    rows(first, last, p ? c[(p + 1) % 2] : a, c[p % 2]);
    pthread_barrier_wait(&barrier);
    if (me == 0) {
      double trace = 0;
      for (int i = 0; i < N; i++)
        trace += c[p % 2][i][i];
      printf("product %d: trace %a\n", p, trace);
      fflush(stdout);
    }
  }
  return 0;
}

int main(void) {
  unsigned s = 7;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      s = s * 1664525 + 1013904223;
      a[i][j] = (s >> 16) / 65536.0;
      s = s * 1664525 + 1013904223;
      b[i][j] = (s >> 16) / 65536.0;
    }
  pthread_barrier_init(&barrier, 0, THREADS);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], 0);
  double sum = 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      sum += c[(PRODUCTS - 1) % 2][i][j] * (i + 2 * j + 1);
  printf("sum %a\n", sum);
}
