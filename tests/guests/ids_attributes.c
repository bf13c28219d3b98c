// build:
// deterministic
// descends
// loses
// Proves: calls that look private and name a process or thread by its id (own, another thread's, a
// child's): niceness, scheduling, input/output priority. Followers have other ids in the kernel, and were
// told ESRCH.
#include "guest.h"
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#define BATCH 3
#define IO(class, level) ((class) << 13 | (level))
struct attr {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};
static pthread_barrier_t there, done;
static pid_t other;
static void *stand(void *arg) {
  (void)arg;
  other = gettid();
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&done);
  // What others have set it sees itself.
  CHECK(getpriority(PRIO_PROCESS, 0) == 9 && sched_getscheduler(0) == BATCH);
  CHECK(syscall(SYS_ioprio_get, 1, 0) == IO(2, 6));
  return NULL;
}
static void try_with(const char *who, pid_t id, int nice) {
  int policy = sched_getscheduler(id);
  struct sched_param p = {.sched_priority = 7};
  CHECK(sched_getparam(id, &p) == 0 && p.sched_priority == 0);
  CHECK(sched_setscheduler(id, BATCH, &p) == 0 && sched_getscheduler(id) == BATCH);
  CHECK(sched_setparam(id, &p) == 0);
  CHECK(setpriority(PRIO_PROCESS, id, nice) == 0);
  CHECK(getpriority(PRIO_PROCESS, id) == nice);
  struct attr a = {.size = sizeof a};
  CHECK(syscall(SYS_sched_getattr, id, &a, sizeof a, 0) == 0);
  CHECK(a.policy == BATCH && a.nice == nice && a.size >= 48);
  a.nice = nice + 2;
  CHECK(syscall(SYS_sched_setattr, id, &a, 0) == 0);
  CHECK(getpriority(PRIO_PROCESS, id) == nice + 2);
  cpu_set_t set;
  CHECK(sched_getaffinity(id, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0);
  CHECK(sched_setaffinity(id, sizeof set, &set) == 0);
  struct timespec quantum;
  CHECK(sched_rr_get_interval(id, &quantum) == 0);
  CHECK(syscall(SYS_ioprio_set, 1, id, IO(2, 6)) == 0);
  CHECK(syscall(SYS_ioprio_get, 1, id) == IO(2, 6));
  printf("%s: policy %d, nice %d\n", who, policy, getpriority(PRIO_PROCESS, id));
}
int main(void) {
  pthread_t t;
  CHECK(!pthread_barrier_init(&there, NULL, 2) && !pthread_barrier_init(&done, NULL, 2));
  CHECK(!pthread_create(&t, NULL, stand, NULL));
  pthread_barrier_wait(&there);
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char c;
    CHECK(read(ends[0], &c, 1) == 1);
    // The child's, which its parent has set.
    CHECK(getpriority(PRIO_PROCESS, 0) == 5 && sched_getscheduler(0) == BATCH);
    try_with("a child itself", getpid(), 10);
    fflush(stdout);
    _exit(0);
  }
  try_with("a child", child, 3);
  CHECK(write(ends[1], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  try_with("the process", getpid(), 2);
  try_with("another thread", other, 7);
  try_with("its own thread", gettid(), 11);
  pthread_barrier_wait(&done);
  CHECK(!pthread_join(t, NULL));
  // Nobody is called so.
  errno = 0;
  CHECK(setpriority(PRIO_PROCESS, 1 << 29, 5) == -1 && errno == ESRCH);
  CHECK(sched_getscheduler(1 << 29) == -1 && errno == ESRCH);
  CHECK(sched_setscheduler(-1, BATCH, &(struct sched_param){0}) == -1 && errno == EINVAL);
  // Its group's.
  CHECK(getpriority(PRIO_PGRP, getpgrp()) <= 13 && getpriority(PRIO_PGRP, 0) <= 13);
  guest_ok("ids_attributes");
}
