// build:
// deterministic
// loses
// Proves: pthread_atfork handlers run in order in parent and child; atexit too.
#include "guest.h"
#include <pthread.h>
#include <sys/wait.h>
static char trace[16];
static int n;
static void a1(void) { trace[n++] = '1'; }
static void a2(void) { trace[n++] = '2'; }
static void p1(void) { trace[n++] = 'p'; }
static void p2(void) { trace[n++] = 'P'; }
static void c1(void) { trace[n++] = 'c'; }
static void c2(void) { trace[n++] = 'C'; }
static void last(void) { guest_ok("atfork"); }
int main(void) {
  CHECK(!atexit(last));
  CHECK(!pthread_atfork(a1, p1, c1) && !pthread_atfork(a2, p2, c2));
  pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0)
    _exit(strcmp(trace, "21cC") != 0);
  int st;
  CHECK(waitpid(pid, &st, 0) == pid && st == 0);
  CHECK(!strcmp(trace, "21pP"));
}
