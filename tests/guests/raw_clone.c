// build:
// deterministic
// loses
// Proves: threads made with clone directly, without pthread: a stack of one's
// own, CLONE_CHILD_CLEARTID and a futex wait for it, exit of the thread only.
#include "guest.h"
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
static int tid[4], sum;
static int body(void *arg) {
  __sync_fetch_and_add(&sum, (int)(intptr_t)arg);
  syscall(SYS_exit, 0);
  return 0;
}
int main(void) {
  for (intptr_t i = 0; i < 4; i++) {
    char *stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED);
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    CHECK(clone(body, stack + 65536, flags, (void *)(i + 1), &tid[i], NULL, &tid[i]) > 0);
  }
  for (int i = 0; i < 4; i++)
    for (int t; (t = *(volatile int *)&tid[i]) != 0;)
      syscall(SYS_futex, &tid[i], FUTEX_WAIT, t, NULL, NULL, 0);
  CHECK(__sync_fetch_and_add(&sum, 0) == 10);
  guest_ok("raw_clone");
}
