// build:
// deterministic
// loses
// Proves: nothing by itself; it passes the places at which tests/points.rs has
// something go wrong: locks, atomics, memory, births and ends of threads, large
// writes to pipes, files, forks with threads and a mapping, exec, signals. What
// it prints does not depend on the order of anything.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define THREADS 3
#define ROUNDS 60
#define LARGE (200 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t places, end;
static atomic_ulong drawn;
static uint64_t sum;
static volatile sig_atomic_t alarms, changes, told;

static void on_alarm(int s) { alarms += s == SIGALRM; }
static void on_told(int s) { told += s == SIGUSR1; }
static void on_change(int s) { changes += s == SIGWINCH; }

// Adds up under a lock, draws from an atomic, takes and gives memory back.
static void *worker(void *arg) {
  uint64_t seed = (uintptr_t)arg + 7;
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(!sem_wait(&places));
    pthread_mutex_lock(&lock);
    sum += guest_rand(&seed) & 0xff;
    pthread_mutex_unlock(&lock);
    CHECK(!sem_post(&places));
    atomic_fetch_add(&drawn, 1);
    // Its answer differs from run to run: nobody looks at it.
    if (!pthread_mutex_trylock(&lock))
      pthread_mutex_unlock(&lock);
    if (i % 10 == 0) {
      char *m = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      CHECK(m != MAP_FAILED);
      m[i] = 1;
      CHECK(!munmap(m, 1 << 16));
    }
  }
  return NULL;
}

static void threads(const char *where) {
  pthread_t t[THREADS];
  sum = drawn = 0;
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, worker, (void *)i));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  printf("%s: sum %llu, drawn %lu\n", where, (unsigned long long)sum,
         (unsigned long)drawn);
  fflush(stdout);
}

static int pipes[2];

static void *write_large(void *arg) {
  unsigned char *piece = malloc(LARGE);
  uint64_t seed = 5;
  CHECK(piece);
  for (int n = 0; n < 3; n++) {
    for (size_t i = 0; i < LARGE; i++)
      piece[i] = guest_rand(&seed);
    // (Only a handler cuts it short.)
    for (size_t out = 0; out < LARGE;) {
      int before = changes;
      ssize_t part = write(pipes[1], piece + out, LARGE - out);
      CHECK(part > 0 && (out + part == LARGE || changes != before));
      out += part;
    }
  }
  struct iovec v[2] = {{"tail", 4}, {"end", 3}};
  CHECK(writev(pipes[1], v, 2) == 7);
  CHECK(!close(pipes[1]));
  free(piece);
  return arg;
}

static void large_writes(void) {
  static unsigned char buffer[70000];
  pthread_t t;
  uint64_t h = 0;
  size_t all = 0;
  ssize_t n;
  CHECK(!pipe(pipes));
  CHECK(!pthread_create(&t, NULL, write_large, NULL));
  while ((n = read(pipes[0], buffer, sizeof buffer)) > 0) {
    h = guest_hash(h, buffer, n);
    all += n;
  }
  CHECK(n == 0 && !pthread_join(t, NULL) && !close(pipes[0]));
  printf("pipe: %zu bytes, %llx\n", all, (unsigned long long)h);
}

static void files(const char *path) {
  char text[64], back[64];
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  CHECK(fd >= 0);
  for (int i = 0; i < 20; i++) {
    int n = snprintf(text, sizeof text, "line %d of the file\n", i);
    CHECK(write(fd, text, n) == n);
  }
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  uint64_t h = 0;
  ssize_t n;
  while ((n = read(fd, back, sizeof back)) > 0)
    h = guest_hash(h, back, n);
  CHECK(n == 0 && !close(fd));
  printf("file: %llx\n", (unsigned long long)h);
  fflush(stdout);
}

// A child maps the file, has threads, and forks one that loads a program.
static void child(const char *path) {
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0);
  char *m = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  CHECK(m != MAP_FAILED && !close(fd));
  printf("child: mapped %.6s\n", m);
  threads("child");
  pid_t p = fork();
  CHECK(p >= 0);
  if (p == 0) {
    execl("/proc/self/exe", "points", "loaded", (char *)NULL);
    _exit(GUEST_CHECK_EXIT);
  }
  int status;
  CHECK(waitpid(p, &status, 0) == p && WIFEXITED(status));
  printf("child: program ended with %d\n", WEXITSTATUS(status));
  fflush(stdout);
  _exit(3);
}

static void forks(const char *path) {
  for (int i = 0; i < 2; i++) {
    fflush(stdout);
    pid_t p = fork();
    CHECK(p >= 0);
    if (p == 0)
      child(path);
    int status;
    pid_t got;
    while ((got = waitpid(p, &status, 0)) == -1 && errno == EINTR)
      ;
    CHECK(got == p && WIFEXITED(status));
    printf("forked: %d\n", WEXITSTATUS(status));
  }
}

// Until three have come, in calls and between them.
static void signals(void) {
  struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
  struct timespec nap = {0, 1000000};
  CHECK(!setitimer(ITIMER_REAL, &often, NULL));
  while (alarms < 3)
    nanosleep(&nap, NULL);
  CHECK(!setitimer(ITIMER_REAL, &never, NULL));
  // Each once.
  for (int n = 0; n < 4; n++)
    CHECK(!kill(getpid(), SIGUSR1));
  printf("signals came, %d were told\n", (int)told);
}

// A child's, which nobody waits for.
static void is_signalled(void) {
  pid_t parent = getpid(), p = fork();
  CHECK(p >= 0);
  if (p == 0)
    _exit(kill(parent, SIGURG) || kill(parent, SIGURG));
  int status;
  CHECK(waitpid(p, &status, 0) == p && status == 0);
}

// There until the end, so that a copy of the process has two threads at least.
static void *sleeper(void *arg) {
  CHECK(!sem_wait(&end));
  return arg;
}

int main(int argc, char **argv) {
  pthread_t t;
  sigset_t all, none;
  if (argc > 1 && !strcmp(argv[1], "loaded")) {
    printf("a program was loaded\n");
    fflush(stdout);
    return 4;
  }
  const char *path = guest_tmp("points");
  // (A test sends SIGWINCH.)
  struct sigaction a = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  struct sigaction c = {.sa_handler = on_change, .sa_flags = SA_RESTART};
  struct sigaction u = {.sa_handler = on_told, .sa_flags = SA_RESTART};
  CHECK(!sigaction(SIGUSR1, &u, NULL));
  CHECK(!sigaction(SIGALRM, &a, NULL) && !sigaction(SIGWINCH, &c, NULL));
  CHECK(!sem_init(&places, 0, 2) && !sem_init(&end, 0, 0));
  // (What handlers count is the first thread's alone.)
  sigfillset(&all);
  CHECK(!pthread_sigmask(SIG_BLOCK, &all, &none));
  CHECK(!pthread_create(&t, NULL, sleeper, NULL));
  CHECK(!pthread_sigmask(SIG_SETMASK, &none, NULL));
  threads("first");
  large_writes();
  files(path);
  signals();
  forks(path);
  threads("last");
  CHECK(!sem_post(&end) && !pthread_join(t, NULL));
  is_signalled();
  unlink(path);
  guest_ok("points");
}
