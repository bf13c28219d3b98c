// build:
// args: 3 20
// deterministic
// loses
// Proves: what a program has set of its process, its threads and its child by their ids, and the ids
// themselves, stay as they were; tests of recovery kill the leader meanwhile. (All of it was the lost
// leader's alone.)
#include "guest.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#define THREADS 3
#define BATCH 3
#define IO(class, level) ((class) << 13 | (level))
static pthread_barrier_t there, begin;
static pid_t pid, parent, tids[THREADS];
static int rounds, nap_ms;
static char text[4096];
static __thread char own_text[256];

static void nap(void) {
  struct timespec t = {nap_ms / 1000, nap_ms % 1000 * 1000000};
  CHECK(nanosleep(&t, NULL) == 0);
}
static char *content(const char *path, char *to, size_t room) {
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0);
  ssize_t n = read(fd, to, room - 1);
  CHECK(n > 0 && close(fd) == 0);
  to[n] = 0;
  return to;
}
static void put(const char *path, const char *what) {
  int fd = open(path, O_WRONLY);
  CHECK(fd >= 0 && write(fd, what, strlen(what)) == (ssize_t)strlen(what) && close(fd) == 0);
}
static void check_link(const char *path, const char *wanted) {
  char link[64];
  ssize_t n = readlink(path, link, sizeof link - 1);
  CHECK(n > 0);
  link[n] = 0;
  CHECK(!strcmp(link, wanted));
}
// Each thread's own: its name was given by another thread, its niceness by itself or another one.
static void check_thread(int me) {
  char wanted[64], path[64];
  CHECK(gettid() == tids[me] && getpid() == pid);
  CHECK(getpriority(PRIO_PROCESS, 0) == 5 + me);
  CHECK(getpriority(PRIO_PROCESS, tids[me]) == 5 + me);
  CHECK(sched_getscheduler(0) == (me % 2 ? BATCH : 0));
  CHECK(syscall(SYS_ioprio_get, 1, 0) == IO(2, me));
  snprintf(wanted, sizeof wanted, "thread %d", me);
  CHECK(prctl(PR_GET_NAME, own_text) == 0 && !strcmp(own_text, wanted));
  snprintf(path, sizeof path, "/proc/self/task/%d/comm", tids[me]);
  content(path, own_text, sizeof own_text)[strlen(wanted)] = 0;
  CHECK(!strcmp(own_text, wanted));
  snprintf(wanted, sizeof wanted, "%d/task/%d", pid, tids[me]);
  check_link("/proc/thread-self", wanted);
  CHECK(syscall(SYS_tgkill, pid, tids[me], 0) == 0);
  cpu_set_t set;
  CHECK(sched_getaffinity(tids[me], sizeof set, &set) == 0 && CPU_COUNT(&set) == 1);
}
static void *work(void *arg) {
  int me = (int)(intptr_t)arg;
  tids[me] = gettid();
  CHECK(setpriority(PRIO_PROCESS, tids[me], 5 + me) == 0);
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&begin);
  for (int i = 0; i < rounds; i++) {
    check_thread(me);
    nap();
  }
  return NULL;
}
static uint64_t limit(int which) {
  struct rlimit r;
  CHECK(getrlimit(which, &r) == 0);
  return r.rlim_cur;
}
static void set_limit(int which, uint64_t to) {
  struct rlimit r;
  CHECK(getrlimit(which, &r) == 0);
  r.rlim_cur = to;
  CHECK(setrlimit(which, &r) == 0);
}
static void check_process(pid_t child) {
  char path[64], wanted[64];
  CHECK(getpid() == pid && gettid() == pid && getppid() == parent);
  CHECK(prctl(PR_GET_NAME, own_text) == 0 && !strcmp(own_text, "the first"));
  CHECK(getpriority(PRIO_PROCESS, pid) == 3);
  CHECK(!strcmp(content("/proc/self/oom_score_adj", text, sizeof text), "300\n"));
  CHECK(!strcmp(content("/proc/self/coredump_filter", text, sizeof text), "00000011\n"));
  CHECK(prctl(PR_GET_TIMERSLACK) == 70000);
  CHECK(limit(RLIMIT_NOFILE) == 77 && limit(RLIMIT_CORE) == 0 && limit(RLIMIT_FSIZE) == 1 << 30);
  snprintf(wanted, sizeof wanted, "%d", pid);
  check_link("/proc/self", wanted);
  snprintf(path, sizeof path, "/proc/%d/comm", pid);
  CHECK(!strcmp(content(path, text, sizeof text), "the first\n"));
  CHECK(kill(pid, 0) == 0 && kill(child, 0) == 0);
  CHECK(getpgid(0) == getpgrp() && getpgid(pid) == getpgrp() && getpgid(child) == getpgrp());
  CHECK(getsid(0) == getsid(pid) && getsid(child) == getsid(0));
  // Its child's.
  CHECK(getpriority(PRIO_PROCESS, child) == 9 && sched_getscheduler(child) == BATCH);
  snprintf(path, sizeof path, "/proc/%d/comm", child);
  CHECK(!strcmp(content(path, text, sizeof text), "the child\n"));
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", child);
  CHECK(!strcmp(content(path, text, sizeof text), "400\n"));
  CHECK(setpriority(PRIO_PROCESS, child, 9) == 0);
  CHECK(sched_setscheduler(pid, 0, &(struct sched_param){0}) == 0);
}
static void be_child(int in) {
  char c;
  pid = getpid();
  CHECK(prctl(PR_SET_NAME, "the child") == 0);
  CHECK(read(in, &c, 1) == 1);
  for (int i = 0; i < rounds; i++) {
    CHECK(getpid() == pid && gettid() == pid);
    CHECK(getpriority(PRIO_PROCESS, 0) == 9 && getpriority(PRIO_PROCESS, pid) == 9);
    CHECK(sched_getscheduler(0) == BATCH);
    CHECK(prctl(PR_GET_NAME, own_text) == 0 && !strcmp(own_text, "the child"));
    CHECK(!strcmp(content("/proc/self/oom_score_adj", text, sizeof text), "400\n"));
    nap();
  }
  // Its parent asks for it until then.
  CHECK(read(in, &c, 1) == 1);
  _exit(0);
}
int main(int argc, char **argv) {
  CHECK(argc == 3);
  rounds = atoi(argv[1]);
  nap_ms = atoi(argv[2]);
  pid = getpid();
  parent = getppid();
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0)
    be_child(ends[0]);
  CHECK(setpriority(PRIO_PROCESS, child, 9) == 0);
  CHECK(sched_setscheduler(child, BATCH, &(struct sched_param){0}) == 0);
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", child);
  put(path, "400");
  // The child has its name by then.
  do
    nap();
  while (snprintf(path, sizeof path, "/proc/%d/comm", child),
         strcmp(content(path, text, sizeof text), "the child\n"));
  CHECK(write(ends[1], "x", 1) == 1);
  pthread_t t[THREADS];
  CHECK(!pthread_barrier_init(&there, NULL, THREADS + 1));
  CHECK(!pthread_barrier_init(&begin, NULL, THREADS + 1));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&t[i], NULL, work, (void *)(intptr_t)i));
  pthread_barrier_wait(&there);
  for (int i = 0; i < THREADS; i++) {
    char name[16];
    snprintf(name, sizeof name, "thread %d", i);
    CHECK(!pthread_setname_np(t[i], name));
    if (i % 2)
      CHECK(sched_setscheduler(tids[i], BATCH, &(struct sched_param){0}) == 0);
    CHECK(syscall(SYS_ioprio_set, 1, tids[i], IO(2, i)) == 0);
    cpu_set_t set, one;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++)
      if (CPU_ISSET(c, &set))
        CPU_SET(c, &one);
    CHECK(sched_setaffinity(tids[i], sizeof one, &one) == 0);
  }
  put("/proc/self/comm", "the first");
  CHECK(setpriority(PRIO_PROCESS, pid, 3) == 0);
  put("/proc/self/oom_score_adj", "300");
  put("/proc/self/coredump_filter", "0x11");
  CHECK(prctl(PR_SET_TIMERSLACK, 70000) == 0);
  set_limit(RLIMIT_NOFILE, 77);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_FSIZE, 1 << 30);
  pthread_barrier_wait(&begin);
  for (int i = 0; i < rounds; i++) {
    check_process(child);
    nap();
  }
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_join(t[i], NULL));
  CHECK(write(ends[1], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  guest_ok("recover_ids");
}
