// A program with two releases, which the compiler is told: RELEASE is 1 or 2, and RELEASE_NAME what it calls itself. The second one has other code, data and memory,
// asks the time more often, and says that it is the second. BUG: it counts wrong after a while.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#if RELEASE == 2
static char table[3 << 20];
static long more(long n) {
  struct stat st;
  char *all[100];
  for (int i = 0; i < 100; i++) all[i] = malloc(100000 + n);
  for (long i = 0; i < 10000; i++) table[(i * 577) % (long)sizeof table] += n;
  for (int i = 0; i < 100; i++) free(all[i]);
  unsigned word = 0;
  getrandom(&word, sizeof word, 0);
  return time(NULL) + table[n] + stat("/", &st) + (getpid() == 0) + (word & 1);
}
#else
static long more(long n) { return n; }
#endif
static volatile long sink;

static int lines(void) {
  static char line[1000];
  long n = 0, bytes = 0;
  sink = more(1);
  while (fgets(line, sizeof line, stdin)) {
    n++;
    bytes += strlen(line);
#ifdef BUG
    bytes += n == 3000;
#endif
    if (n % 1000 == 0) {
      printf("%ld lines, %ld bytes\n", n, bytes);
      fflush(stdout);
      sink = more(n / 1000);
    }
  }
  printf("in all %ld lines, %ld bytes\n", n, bytes);
  return 3;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char order[4001];
static int begun;

static void *work(void *which) {
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&lock);
    order[begun++] = *(char *)which;
    if (i % 10 == 0) sink = more(i % 100);
    pthread_mutex_unlock(&lock);
    if (i % 50 == 0) usleep(100);
  }
  return NULL;
}

static int threads(void) {
  pthread_t all[4];
  char names[] = "abcd";
  for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, work, names + i);
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
  puts(order);
  return 0;
}

static void say(const char *text) {
  if (write(1, text, strlen(text)) != (ssize_t)strlen(text)) abort();
}

static int says(void) {
  say("this is release " RELEASE_NAME ", as it says\n");
  char *parts[] = {"once more: ", "this is release " RELEASE_NAME, "\n"};
  struct iovec all[3];
  ssize_t len = 0;
  for (int i = 0; i < 3; i++) len += all[i].iov_len = strlen(all[i].iov_base = parts[i]);
  if (writev(1, all, 3) != len) abort();
#if RELEASE == 1
  say("only the first says this\n");
#else
  sink = more(5);
  say("only the second says that\n");
  say("and only the second says that again\n");
#endif
  say("both say this\n");
  return 0;
}

static void hears(int signal) {
  say(signal == SIGUSR1 ? "one\n" : signal == SIGUSR2 ? "two\n" : "another\n");
}

static int signals(void) {
  struct sigaction action = {.sa_handler = hears};
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  sigprocmask(SIG_SETMASK, &all, NULL);
  sink = more(3);
  kill(getpid(), SIGUSR2);
  sigsuspend(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  sink = more(4);
  kill(getpid(), SIGUSR1);
  return 0;
}

struct client {
  int fd;
  long count;
};

static int answers(struct client *c) {
  char in[1000], out[1100];
  ssize_t n = read(c->fd, in, sizeof in - 1);
  if (n <= 0) return 0;
  in[n] = 0;
  if (!strncmp(in, "quit", 4)) exit(0);
  sink = more(c->count % 100);
  int len = snprintf(out, sizeof out, "release " RELEASE_NAME ": %ld %s", ++c->count, in);
  return write(c->fd, out, len) == len;
}

static int serve(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  strncpy(name.sun_path, path, sizeof name.sun_path - 1);
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  struct client listener = {s, 0};
  sink = more(2);
  int all = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
  if (bind(s, (void *)&name, sizeof name) || listen(s, 5) || all < 0) return 1;
  if (epoll_ctl(all, EPOLL_CTL_ADD, s, &event)) return 1;
  for (;;) {
    struct epoll_event found;
    if (epoll_wait(all, &found, 1, -1) != 1) continue;
    struct client *c = found.data.ptr;
    if (c->fd == s) {
      c = calloc(1, sizeof *c + 1000 * RELEASE);
      c->fd = accept(s, NULL, NULL);
      event.data.ptr = c;
      if (c->fd < 0 || epoll_ctl(all, EPOLL_CTL_ADD, c->fd, &event)) return 1;
    } else if (!answers(c)) {
      close(c->fd);
      free(c);
    }
  }
}

int main(int argc, char **argv) {
  if (argc == 3) return serve(argv[2]);
  const char *what = argc > 1 ? argv[1] : "";
  return !strcmp(what, "lines") ? lines() : !strcmp(what, "threads") ? threads() : !strcmp(what, "says") ? says() : !strcmp(what, "signals") ? signals() : 9;
}
