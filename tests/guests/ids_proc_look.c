// build:
// deterministic
// loses
// Proves: what /proc says about a process and its threads by id and by `self`, for itself and a child: links,
// ids in stat and status, lists of tasks and descriptors, names.
#include "guest.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
static pthread_barrier_t there, done;
static pid_t other;
static char text[8192];
static void *stand(void *arg) {
  (void)arg;
  other = gettid();
  char link[64], want[64];
  ssize_t n = readlink("/proc/thread-self", link, sizeof link - 1);
  CHECK(n > 0);
  link[n] = 0;
  snprintf(want, sizeof want, "%d/task/%d", getpid(), other);
  CHECK(!strcmp(link, want));
  pthread_barrier_wait(&there);
  pthread_barrier_wait(&done);
  return NULL;
}
static int in_folder(const char *path, int *wanted) {
  DIR *d = opendir(path);
  CHECK(d);
  int count = 0;
  struct dirent *e;
  while ((e = readdir(d))) {
    if (e->d_name[0] == '.')
      continue;
    count++;
    for (int i = 0; wanted && i < 2; i++)
      if (atoi(e->d_name) == wanted[i])
        wanted[i] = 0;
  }
  closedir(d);
  return count;
}
static char *content(const char *folder, const char *leaf) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, leaf);
  int fd = open(path, O_RDONLY);
  CHECK(fd >= 0);
  ssize_t n = read(fd, text, sizeof text - 1);
  CHECK(n >= 0 && close(fd) == 0);
  text[n] = 0;
  return text;
}
static int field(const char *name) {
  char key[32];
  snprintf(key, sizeof key, "\n%s:", name);
  char *at = strstr(text, key);
  CHECK(at);
  return atoi(at + strlen(key));
}
static void look(const char *folder, pid_t pid, pid_t tid, pid_t parent) {
  int a, b, c, d;
  char link[256];
  CHECK(sscanf(content(folder, "stat"), "%d (ids_proc_look) %*c %d %d %d", &a, &b, &c, &d) == 4);
  CHECK(a == tid && b == parent && c == getpgrp() && d == getsid(0));
  content(folder, "status");
  CHECK(field("Tgid") == pid && field("Pid") == tid && field("PPid") == parent);
  CHECK(!strcmp(content(folder, "comm"), "ids_proc_look\n"));
  CHECK(strstr(content(folder, "cmdline"), "ids_proc_look"));
  snprintf(text, sizeof text, "%s/exe", folder);
  ssize_t n = readlink(text, link, sizeof link - 1);
  CHECK(n > 0);
  link[n] = 0;
  CHECK(strstr(link, "ids_proc_look"));
  snprintf(text, sizeof text, "%s/fd/0", folder);
  CHECK(access(text, F_OK) == 0);
  CHECK(strstr(content(folder, "maps"), "ids_proc_look"));
}
int main(void) {
  pthread_t t;
  char link[64], folder[64];
  CHECK(!pthread_barrier_init(&there, NULL, 2) && !pthread_barrier_init(&done, NULL, 2));
  CHECK(!pthread_create(&t, NULL, stand, NULL));
  pthread_barrier_wait(&there);
  ssize_t n = readlink("/proc/self", link, sizeof link - 1);
  CHECK(n > 0);
  link[n] = 0;
  CHECK(atoi(link) == getpid());
  look("/proc/self", getpid(), getpid(), getppid());
  look("/proc/thread-self", getpid(), gettid(), getppid());
  snprintf(folder, sizeof folder, "/proc/%d", getpid());
  look(folder, getpid(), getpid(), getppid());
  snprintf(folder, sizeof folder, "/proc/%d/task/%d", getpid(), other);
  look(folder, getpid(), other, getppid());
  snprintf(folder, sizeof folder, "/proc/self/task/%d", other);
  look(folder, getpid(), other, getppid());
  int wanted[2] = {getpid(), other};
  printf("%d tasks\n", in_folder("/proc/self/task", wanted));
  CHECK(wanted[0] == 0 && wanted[1] == 0);
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t parent = getpid(), child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    char c;
    look("/proc/self", getpid(), getpid(), parent);
    snprintf(folder, sizeof folder, "/proc/%d", parent);
    CHECK(access(folder, F_OK) == 0);
    CHECK(close(ends[1]) == 0 && read(ends[0], &c, 1) == 0);
    _exit(0);
  }
  snprintf(folder, sizeof folder, "/proc/%d", child);
  look(folder, child, child, getpid());
  int both[2] = {getpid(), child};
  in_folder("/proc", both);
  CHECK(both[0] == 0 && both[1] == 0);
  CHECK(close(ends[1]) == 0);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  pthread_barrier_wait(&done);
  CHECK(!pthread_join(t, NULL));
  guest_ok("ids_proc_look");
}
