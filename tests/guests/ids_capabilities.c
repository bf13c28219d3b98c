// build:
// deterministic
// Proves: capabilities, limits and robust lists of a process or thread that is named by its id: own, another
// thread's, a child's.
#include "guest.h"
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
static pthread_barrier_t there, done;
static pid_t other;
static uint64_t others_list;
static uint64_t robust_list_of(pid_t id) {
  uint64_t head = 1, len = 0;
  CHECK(syscall(SYS_get_robust_list, id, &head, &len) == 0 && len == 24);
  return head;
}
static void *stand(void *arg) {
  (void)arg;
  other = gettid();
  others_list = robust_list_of(0);
  CHECK(robust_list_of(other) == others_list);
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&done);
  return NULL;
}
static uint32_t capabilities_of(pid_t id) {
  struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, id};
  struct __user_cap_data_struct d[2];
  memset(d, 0xee, sizeof d);
  CHECK(syscall(SYS_capget, &h, d) == 0);
  CHECK(h.pid == id && h.version == _LINUX_CAPABILITY_VERSION_3);
  return d[0].permitted ^ d[1].permitted;
}
static void set_capabilities(pid_t id) {
  struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, id};
  struct __user_cap_data_struct d[2];
  CHECK(syscall(SYS_capget, &h, d) == 0);
  d[0].inheritable = 0;
  CHECK(syscall(SYS_capset, &h, d) == 0);
}
static void limit(const char *who, pid_t id, unsigned files) {
  struct rlimit old, now, less;
  CHECK(prlimit(id, RLIMIT_NOFILE, NULL, &old) == 0);
  less = (struct rlimit){files, old.rlim_max};
  CHECK(prlimit(id, RLIMIT_NOFILE, &less, NULL) == 0);
  CHECK(prlimit(id, RLIMIT_NOFILE, NULL, &now) == 0);
  printf("%s: %u files\n", who, (unsigned)now.rlim_cur);
}
int main(void) {
  pthread_t t;
  CHECK(!pthread_barrier_init(&there, NULL, 2) && !pthread_barrier_init(&done, NULL, 2));
  CHECK(!pthread_create(&t, NULL, stand, NULL));
  pthread_barrier_wait(&there);
  uint32_t own = capabilities_of(0);
  CHECK(capabilities_of(getpid()) == own && capabilities_of(gettid()) == own);
  CHECK(capabilities_of(other) == own);
  set_capabilities(0);
  set_capabilities(gettid());
  struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, other};
  struct __user_cap_data_struct d[2] = {{0}};
  CHECK(syscall(SYS_capset, &h, d) == -1 && errno == EPERM);
  h.version = 0;
  CHECK(syscall(SYS_capget, &h, d) == -1 && errno == EINVAL);
  CHECK(h.version == _LINUX_CAPABILITY_VERSION_3);
  h.version = 0;
  CHECK(syscall(SYS_capget, &h, NULL) == 0 && h.version == _LINUX_CAPABILITY_VERSION_3);
  h.pid = 1 << 29;
  CHECK(syscall(SYS_capget, &h, d) == -1 && errno == ESRCH);
  CHECK(robust_list_of(0) == robust_list_of(gettid()));
  CHECK(robust_list_of(other) == others_list && others_list != robust_list_of(0));
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char c;
    CHECK(read(ends[0], &c, 1) == 1);
    struct rlimit r;
    CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur == 99);
    CHECK(capabilities_of(getpid()) == own);
    limit("a child itself", getpid(), 98);
    fflush(stdout);
    _exit(0);
  }
  CHECK(capabilities_of(child) == own);
  robust_list_of(child);
  limit("a child", child, 99);
  CHECK(write(ends[1], "x", 1) == 1);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  limit("the process", getpid(), 97);
  pthread_barrier_wait(&done);
  CHECK(!pthread_join(t, NULL));
  guest_ok("ids_capabilities");
}
