// build:
// not in code: it writes to /proc/self/mem at an offset that is an address
// not in data: likewise
// deterministic
// loses
// Proves: files below /proc/self, /proc/PID, /proc/thread-self that change the process when they are written:
// names of threads, memory, attributes. Only the leader's process was changed, and what each replica then
// looked up in its own differed.
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
static pthread_barrier_t there, done;
static pid_t other;
static void *stand(void *arg) {
  (void)arg;
  other = gettid();
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&done);
  char name[16];
  CHECK(prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "given"));
  CHECK(prctl(PR_SET_NAME, "by itself") == 0);
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&done);
  return NULL;
}
static const char *content(const char *path) {
  static char text[4096];
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0);
  ssize_t n = read(fd, text, sizeof text - 1);
  CHECK(n >= 0 && close(fd) == 0);
  text[n] = 0;
  return text;
}
static void put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  CHECK(fd >= 0);
  CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  CHECK(close(fd) == 0);
}
static volatile uint64_t cell = 1;
int main(void) {
  pthread_t t;
  char name[16], path[64];
  CHECK(!pthread_barrier_init(&there, NULL, 2) && !pthread_barrier_init(&done, NULL, 2));
  CHECK(!pthread_create(&t, NULL, stand, NULL));
  pthread_barrier_wait(&there);
  CHECK(!pthread_setname_np(t, "given"));
  CHECK(!pthread_getname_np(t, name, sizeof name) && !strcmp(name, "given"));
  pthread_barrier_wait(&done);
  pthread_barrier_wait(&there);
  CHECK(!pthread_getname_np(t, name, sizeof name) && !strcmp(name, "by itself"));
  snprintf(path, sizeof path, "/proc/%d/task/%d/comm", getpid(), other);
  CHECK(!strcmp(content(path), "by itself\n"));
  put("/proc/self/comm", "first");
  CHECK(prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "first"));
  put("/proc/thread-self/comm", "second");
  CHECK(prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "second"));
  snprintf(path, sizeof path, "/proc/%d/comm", getpid());
  put(path, "a name that is longer than fifteen");
  CHECK(prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "a name that is "));
  CHECK(prctl(PR_SET_NAME, "again") == 0 && !strcmp(content(path), "again\n"));
  CHECK(!strcmp(content("/proc/thread-self/comm"), "again\n"));
  CHECK(prctl(PR_SET_TIMERSLACK, 70000) == 0);
  CHECK(!strcmp(content("/proc/self/timerslack_ns"), "70000\n"));
  put("/proc/self/timerslack_ns", "60000");
  CHECK(prctl(PR_GET_TIMERSLACK) == 60000);
  put("/proc/self/oom_score_adj", "300");
  CHECK(!strcmp(content("/proc/self/oom_score_adj"), "300\n"));
  put("/proc/self/coredump_filter", "0x11");
  CHECK(!strcmp(content("/proc/self/coredump_filter"), "00000011\n"));
  // Its own memory.
  int fd = open("/proc/self/mem", O_RDWR);
  CHECK(fd >= 0);
  uint64_t word = 77, seen = 0;
  CHECK(pwrite(fd, &word, 8, (off_t)(uintptr_t)&cell) == 8);
  CHECK(pread(fd, &seen, 8, (off_t)(uintptr_t)&cell) == 8);
  CHECK(close(fd) == 0);
  printf("%d %d\n", (int)cell, (int)seen);
  pthread_barrier_wait(&done);
  CHECK(!pthread_join(t, NULL));
  guest_ok("ids_proc_files");
}
